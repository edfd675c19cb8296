"""verl's FSDP2 engine with the paper's loss, one per process; on a CPU with a platform that verl does not have."""

import importlib.metadata
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from verl.plugin.platform import set_platform
from verl.plugin.platform.platform_base import PlatformBase

from arise.engines.remote.workers.loop import Row, Taken, UpdateSpec
from arise.engines.remote.workers.loss import Totals
from arise.engines.remote.workers.sharded import (
    export_adapter,
    export_model,
    flash_attention,
    load_sharded,
    save_sharded,
    start_moments,
)


class Cpu(PlatformBase):  # type: ignore[misc]
    """A CPU as a device of verl."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = torch.cpu

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...
    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...
    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:  # noqa: ARG002 - verl's signature
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # noqa: ARG002 - verl's signature
        yield

    def profiler_start(self) -> None: ...
    def profiler_stop(self) -> None: ...

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


class VerlBackend:
    """The requests of the driver, carried out by one verl engine per process."""

    def __init__(self, options: dict[str, Any]) -> None:
        torch.set_num_threads(options["threads"])
        torch.manual_seed(0)  # a restarted trainer begins with equal adapters, so that updates can be repeated
        cpu = options["device"] == "cpu"
        if cpu:
            set_platform(Cpu())
        else:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("gloo" if cpu else "cpu:gloo,cuda:nccl")
        self._engine, self._tensordicts = _engine(options)
        self._engine.initialize()
        start_moments(self._engine.module, self._engine.optimizer)
        self._device = torch.device("cpu" if cpu else f"cuda:{os.environ['LOCAL_RANK']}")
        self._budget = options["token_budget"]
        self._compute = {"fp32": torch.float32, "bf16": torch.bfloat16}[options["precision"]]

    def facts(self) -> dict[str, Any]:
        """Return what the driver records of this trainer."""
        count = sum(parameter.numel() for parameter in self._engine.module.parameters())
        library = f"verl {importlib.metadata.version('verl')}"
        share = self._engine.get_data_parallel_rank()
        return {"library": library, "torch": torch.__version__, "parameters": count, "share": share}

    def update(self, rows: Sequence[Row], spec: UpdateSpec) -> Taken:
        """Take one update: verl runs the micro-batches, the loss and the decision to step are ours."""
        engine, totals = self._engine, Totals(spec)

        def loss(model_output: Any, data: Any, dp_group: Any) -> tuple[torch.Tensor, dict[str, Any]]:  # noqa: ARG001
            mask = data["loss_mask"].values()
            part = totals.add(
                model_output["log_probs"].values(), mask, data["behaviour"].values(), data["advantage"].values()
            )
            # FSDP averages gradients over the processes; the loss is a sum over all of them.
            share = int(mask.sum()) / max(spec.token_count, 1) * engine.get_data_parallel_size()
            return part * share, {}

        engine.module.train()
        engine.optimizer_zero_grad()
        engine.forward_backward_batch(self._batch(rows, spec.temperature), loss, forward_only=False)
        totals = totals.summed(engine.get_data_parallel_group(), self._device)
        return totals.taken(self._take(spec) if math.isfinite(totals.loss) else self._drop())

    def _take(self, spec: UpdateSpec) -> float:
        """Clip, and step where the gradient is finite and not zero; verl's own method would step on zero."""
        from verl.utils.fsdp_utils import fsdp2_clip_grad_norm_

        engine = self._engine
        norm = fsdp2_clip_grad_norm_(engine.module.parameters(), max_norm=spec.max_grad_norm)
        value = float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)
        if math.isfinite(value) and value > 0.0:
            for group in engine.optimizer.param_groups:
                group.update(lr=spec.learning_rate, betas=spec.betas, weight_decay=spec.weight_decay)
            engine.optimizer.step()
        engine.optimizer_zero_grad()
        return value

    def _drop(self) -> float:
        self._engine.optimizer_zero_grad()
        return math.nan

    def score(self, rows: Sequence[Row], temperature: float) -> list[NDArray[np.float64]]:
        """Return log-probs of the generated tokens of each row."""
        found: dict[int, NDArray[np.float64]] = {}

        def collect(model_output: Any, data: Any, dp_group: Any) -> tuple[torch.Tensor, dict[str, Any]]:  # noqa: ARG001
            mask, number = data["loss_mask"].values().bool().cpu(), data["number"].values().cpu()
            logprob = model_output["log_probs"].values().detach().double().cpu()
            for row in number.unique().tolist():
                found[row] = logprob[mask & (number == row)].numpy()
            return torch.zeros(()), {}

        self._engine.module.eval()
        self._engine.forward_backward_batch(self._batch(rows, temperature), collect, forward_only=True)
        return [found[number] for number in range(len(rows))]

    def _batch(self, rows: Sequence[Row], temperature: float) -> Any:
        """Return rows as verl's batch without padding; each target is at the position of the logits that predict it."""

        def nested(values: Sequence[NDArray[Any]]) -> torch.Tensor:
            return torch.nested.as_nested_tensor([torch.from_numpy(v.copy()) for v in values], layout=torch.jagged)

        def shifted(values: NDArray[Any]) -> NDArray[Any]:
            return np.append(values[1:], np.zeros(1, values.dtype))

        # A row longer than a micro-batch gets one of its own; verl wants the same limit in every process.
        longest = torch.tensor(max(len(row.ids_U) for row in rows))
        dist.all_reduce(longest, op=dist.ReduceOp.MAX)
        tensors = {
            "input_ids": nested([row.ids_U for row in rows]),
            "position_ids": nested([np.arange(len(row.ids_U)) for row in rows]),
            "loss_mask": nested([shifted(row.generated_U.astype(np.int64)) for row in rows]),
            "behaviour": nested([shifted(row.logprob_U) for row in rows]),
            "advantage": nested([np.full(len(row.ids_U), row.advantage) for row in rows]),
            "number": nested([np.full(len(row.ids_U), number) for number, row in enumerate(rows)]),
        }
        settings = {
            "temperature": temperature,
            "use_remove_padding": self._engine.use_remove_padding,
            "use_dynamic_bsz": True,
            "max_token_len_per_gpu": max(self._budget, int(longest)),
            "use_fused_kernels": False,
        }
        return self._tensordicts.get_tensordict(tensors, settings)

    def export(self, folder: str) -> None:
        """Write the weights as a Hugging Face folder."""
        export_model(self._engine.module, folder, self._compute)

    def export_adapter(self, folder: str) -> None:
        """Write the adapters alone."""
        export_adapter(self._engine.module, folder, self._compute)

    def save(self, folder: str) -> None:
        """Write weights and optimizer, each process its part."""
        save_sharded(self._engine.module, self._engine.optimizer, folder)

    def load(self, folder: str) -> None:
        """Read what `save` wrote, on any number of processes."""
        load_sharded(self._engine.module, self._engine.optimizer, folder)


def open_backend(options: dict[str, Any]) -> VerlBackend:
    """Load the model and shard it over the processes of the group."""
    return VerlBackend(options)


def _engine(options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the engine and verl's batch functions, imported late: verl asks for its platform when imported."""
    from verl.trainer.config import CheckpointConfig
    from verl.utils import tensordict_utils
    from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    cpu, packed = options["device"] == "cpu", flash_attention(options["device"])
    precision = {"fp32": "fp32", "bf16": "bf16"}[options["precision"]]
    model = HFModelConfig(
        path=options["model"],
        enable_gradient_checkpointing=options["gradient_checkpointing"],
        use_remove_padding=packed,
        override_config={} if packed else {"attn_implementation": "sdpa"},
        lora_rank=options["lora_rank"],
        lora_alpha=2 * options["lora_rank"],
        target_modules="all-linear",
    )
    config = FSDPEngineConfig(
        strategy="fsdp2",
        model_dtype="fp32",
        mixed_precision={"param_dtype": precision, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
        use_torch_compile=not cpu,
        use_remove_padding=packed,
        use_dynamic_bsz=True,
        max_token_len_per_gpu=options["token_budget"],
        infer_max_token_len_per_gpu=options["token_budget"],
    )
    optimizer = FSDPOptimizerConfig(lr=1e-6, lr_scheduler_type="constant", total_training_steps=1, lr_warmup_steps=1)
    return FSDPEngineWithLMHead(model, config, optimizer, CheckpointConfig()), tensordict_utils
