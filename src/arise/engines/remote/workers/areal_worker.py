"""AReaL's FSDP engine with the paper's loss: a subclass that replaces the loss and guards the optimizer step."""

import math
import os
from collections.abc import Sequence
from typing import Any

import areal
import numpy as np
import torch
from areal.api import FinetuneSpec, SaveLoadMeta
from areal.api.cli_args import FSDPEngineConfig, MicroBatchSpec, OptimizerConfig, TrainEngineConfig
from areal.engine.fsdp_engine import FSDPEngine
from areal.engine.fsdp_utils.grad import fsdp2_clip_grad_norm
from numpy.typing import NDArray

from arise.engines.remote.workers.loop import Row, Taken, UpdateSpec
from arise.engines.remote.workers.loss import Totals
from arise.engines.remote.workers.sharded import export_adapter, export_model, flash_attention, start_moments


class Actor(FSDPEngine):  # type: ignore[misc]
    """AReaL's engine; only masks, the decision to step and the values of the optimizer differ."""

    totals: Totals
    spec: UpdateSpec

    def _prepare_mb_list(self, input_: dict[str, Any]) -> Any:
        prepared = super()._prepare_mb_list(input_)
        if self.config.attn_impl != "flash_attention_2":
            # AReaL passes a dictionary of empty masks, right for flash attention only: elsewhere rows packed into one
            # sequence would see each other. Without a mask, transformers separates them by their positions.
            for batch in (*prepared.mbs, *prepared.padded_mbs):
                batch["attention_mask"] = None
        return prepared

    def optimizer_step(self) -> dict[str, float]:
        """Take a step only if the loss is finite and the gradient finite and not zero."""
        self.totals = self.totals.summed(self.dp_group, self.device)
        norm = math.nan
        if math.isfinite(self.totals.loss):
            norm = float(
                fsdp2_clip_grad_norm(
                    list(self.model.parameters()),
                    max_norm=self.spec.max_grad_norm,
                    fsdp_group=self.world_mesh["dp_sp"].get_group(),
                    tp_group=self.world_mesh["tp"].get_group(),
                    offload_params=self.config.fsdp.offload_params,
                )
            )
        if math.isfinite(norm) and norm > 0.0:
            for group in self.optimizer.param_groups:
                group.update(lr=self.spec.learning_rate, betas=self.spec.betas, weight_decay=self.spec.weight_decay)
            self.optimizer.step()
        self.optimizer_zero_grad()
        return {"grad_norm": norm}


class ArealBackend:
    """The requests of the driver, carried out by one AReaL engine per process."""

    def __init__(self, options: dict[str, Any]) -> None:
        torch.set_num_threads(options["threads"])
        torch.manual_seed(0)  # a restarted trainer begins with equal adapters, so that updates can be repeated
        self._engine = Actor(_config(options))
        self._engine.create_process_group()
        self._engine.initialize(None, FinetuneSpec(1, 1, 1))
        self._engine.train()
        start_moments(self._engine.model, self._engine.optimizer)
        self._budget = options["token_budget"]
        self._compute = {"fp32": torch.float32, "bf16": torch.bfloat16}[options["precision"]]

    def facts(self) -> dict[str, Any]:
        """Return what the driver records of this trainer."""
        count = sum(parameter.numel() for parameter in self._engine.model.parameters())
        return {
            "library": f"areal {areal.__version__}",
            "torch": torch.__version__,
            "parameters": count,
            "share": self._engine.data_parallel_rank,
        }

    def update(self, rows: Sequence[Row], spec: UpdateSpec) -> Taken:
        """Take one update through `train_batch`; its loss weight is the number of generated tokens."""
        engine = self._engine
        engine.spec, engine.totals, engine.config.temperature = spec, Totals(spec), spec.temperature
        done = engine.train_batch(
            self._batch(rows), lambda *given, **_: engine.totals.add(given[0], *_targets(given[2])), _generated_tokens
        )
        return engine.totals.taken(done["grad_norm"])

    def _batch(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        # AReaL refuses a row that is longer than a micro-batch, so such a row gets its own.
        longest = max(len(row.ids_U) for row in rows)
        self._engine.config.mb_spec = MicroBatchSpec(max_tokens_per_mb=max(self._budget, longest))
        return _padded(rows)

    def score(self, rows: Sequence[Row], temperature: float) -> list[NDArray[np.float64]]:
        """Return log-probs of the generated tokens of each row."""
        self._engine.config.temperature = temperature
        found = self._engine.forward_batch(self._batch(rows), aggregate_fn=lambda parts: torch.cat(parts, dim=-1))
        return [
            found[i, : len(row.ids_U) - 1].cpu().double().numpy()[row.generated_U[1:]] for i, row in enumerate(rows)
        ]

    def export(self, folder: str) -> None:
        """Write the weights as a Hugging Face folder."""
        if self._engine.config.use_lora:  # AReaL writes the adapters alone
            export_model(self._engine.model, folder, self._compute)
        else:
            self._engine.save(_meta(folder, "hf", self._engine.tokenizer))

    def export_adapter(self, folder: str) -> None:
        """Write the adapters alone."""
        export_adapter(self._engine.model, folder, self._compute)

    def save(self, folder: str) -> None:
        """Write weights and optimizer, each process its part."""
        self._engine.save(_meta(folder, "dcp"))

    def load(self, folder: str) -> None:
        """Read what `save` wrote, on any number of processes."""
        self._engine.load(_meta(folder, "dcp"))


def open_backend(options: dict[str, Any]) -> ArealBackend:
    """Load the model and shard it over the processes of the group."""
    return ArealBackend(options)


def _config(options: dict[str, Any]) -> TrainEngineConfig:
    precision = {"fp32": "float32", "bf16": "bfloat16"}[options["precision"]]
    return TrainEngineConfig(
        experiment_name="arise",
        trial_name="trainer",
        path=options["model"],
        backend=options["backend"] or f"fsdp:d{os.environ['WORLD_SIZE']}",
        attn_impl="flash_attention_2" if flash_attention(options["device"]) else "sdpa",
        mb_spec=MicroBatchSpec(max_tokens_per_mb=options["token_budget"]),
        gradient_checkpointing=options["gradient_checkpointing"],
        disable_dropout=True,
        dtype=precision,
        grad_reduce_dtype="float32",
        optimizer_dtype="float32",
        optimizer=OptimizerConfig(type="adam", lr=1e-6, eps=1e-8, lr_scheduler_type="constant"),
        fsdp=FSDPEngineConfig(memory_efficient_load=False),
        use_lora=options["lora_rank"] > 0,
        lora_rank=options["lora_rank"],
        lora_alpha=2 * options["lora_rank"],
        target_modules=["all-linear"],
    )


def _padded(rows: Sequence[Row]) -> dict[str, torch.Tensor]:
    """Return rows as AReaL's padded batch; each target is at the position of the logits that predict it."""
    width = max(len(row.ids_U) for row in rows)

    def table(values: Sequence[NDArray[Any]], shift: int) -> torch.Tensor:
        filled = np.zeros((len(values), width), dtype=values[0].dtype)
        for line, value in zip(filled, values, strict=True):
            line[: len(value) - shift] = value[shift:]
        return torch.from_numpy(filled)

    return {
        "input_ids": table([row.ids_U for row in rows], 0),
        "attention_mask": table([np.ones(len(row.ids_U), np.bool_) for row in rows], 0),
        "loss_mask": table([row.generated_U for row in rows], 1),
        "behaviour": table([row.logprob_U for row in rows], 1),
        "advantage": table([np.full(len(row.ids_U), row.advantage) for row in rows], 1),
    }


def _targets(batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return batch["loss_mask"], batch["behaviour"], batch["advantage"]


def _generated_tokens(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return batch["loss_mask"].count_nonzero()


def _meta(folder: str, kind: str, tokenizer: Any = None) -> SaveLoadMeta:
    return SaveLoadMeta(folder, kind, with_optim=kind == "dcp", tokenizer=tokenizer, processor=None)
