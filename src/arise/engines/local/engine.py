"""The local engine: samples and trains any Hugging Face causal LM in this process, on CPU or GPU."""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from arise.engines.chat import ChatFormat
from arise.engines.checks import check_request
from arise.engines.formats.generic import GenericFormat
from arise.engines.local import llama
from arise.engines.local.checkpoint import read_state, write_state
from arise.engines.local.decoding import Decoder, Row
from arise.engines.local.generation import Generator
from arise.engines.local.generic import GenericDecoder
from arise.engines.local.kernel import kernel
from arise.engines.local.models import save, save_adapter
from arise.engines.local.native_llama import NativeDecoder
from arise.engines.local.scheduler import Scheduler
from arise.engines.local.training import Trainer
from arise.engines.local.weights import LoraSpec, merged_weights, with_adapters
from arise.engines.stopping import StopRules
from arise.ports import Format
from arise.types import (
    Capabilities,
    Example,
    LossSpec,
    OptimSpec,
    PolicyRef,
    SamplingParams,
    Segment,
    StepStats,
    Tokens,
)

WEIGHTS, MOMENTS = "weights.safetensors", "moments.safetensors"


class LocalEngine:
    """Implements `ports.Engine`; samples from published weights only, so training never affects a running rollout."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        lora: LoraSpec | None = None,
        precision: Literal["fp32", "bf16"] = "fp32",
        token_budget: int = 8192,
        batch_rows: int = 64,
        cache_bytes: int = 2 << 30,
        context_length: int | None = None,
        end_ids: Collection[int] = (),
        chat_format: Format | None = None,
        gradient_checkpointing: bool = False,
        fast: bool = True,
        native: bool = True,
        device: str = "cpu",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        config = model.config
        self._device, self._tokenizer, self._format = _usable(device), tokenizer, chat_format
        self._context_length = context_length or config.max_position_embeddings
        model = model.float().to(self._device).eval()  # no dropout: an update must be a function of its batch
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        decoder: Decoder
        fast = fast and llama.supports(config)
        library = kernel() if native and dtype == torch.float32 and self._device.type == "cpu" else None
        self._threads = threads or torch.get_num_threads()
        rotary = model.model.rotary_emb if fast else None
        if fast and library is not None:
            decoder = NativeDecoder(library, config, rotary, self._context_length, self._threads)
        elif fast:
            decoder = llama.LlamaDecoder(config, rotary, self._context_length, dtype, self._device)
        else:
            decoder = GenericDecoder(model, dtype)
        if gradient_checkpointing:
            _checkpoint_layers(model)
        self._model = with_adapters(model, lora, seed) if lora else model
        self._lora = lora
        rules = StopRules(tokenizer, frozenset(end_ids or _end_ids(tokenizer, model)))
        self._generator = Generator(decoder, rules, self._context_length, batch_rows, cache_bytes, self._device)
        self._trainer = Trainer(self._model, token_budget, precision, self._context_length, self._device, fast)
        self._scheduler = Scheduler(self._threads)
        # Row invariance depends on the number of threads: measure on the compute thread.
        self._scheduler.run_now(lambda: self._publish(version=0))

    @property
    def version(self) -> int:
        """The policy version used for sampling."""
        return self._generator.version

    @property
    def tokenizer(self) -> Any:
        """The policy's tokenizer."""
        return self._tokenizer

    @cached_property
    def chat(self) -> ChatFormat:
        """How this policy's tokenizer writes conversations."""
        return ChatFormat(self._tokenizer)

    @cached_property
    def format(self) -> Format:
        """How this policy writes messages, tool calls and reasoning; from its chat template unless one was given."""
        return self._format or GenericFormat(self._tokenizer)

    def capabilities(self) -> Capabilities:
        """Return what this engine can do."""
        return Capabilities(
            full_parameter=self._lora is None,
            lora=self._lora is not None,
            endpoint=False,
            context_length=self._context_length,
        )

    def facts(self) -> dict[str, str]:
        """Facts that two runs must share to be bit-equal: weight digest, torch version, threads, decoder."""
        weights, decoder = _digest(self._model.state_dict()), self._generator.decoder_name
        return {"weights": weights, "threads": str(self._threads), "torch": torch.__version__, "decoder": decoder}

    @cached_property
    def _foundation(self) -> dict[str, str]:
        """Digest of what a checkpoint depends on but does not store: frozen weights and adapter scale."""
        trained = self._trainer.parameters
        frozen = {name: tensor for name, tensor in self._model.state_dict().items() if name not in trained}
        return {"base": _digest(frozen), "adapters": str(self._lora)} if self._lora else {}

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        """Sample n continuations of a prompt; safe to call from many coroutines."""
        vocabulary = self._model.get_input_embeddings().num_embeddings
        check_request(prompt_ids, params, vocabulary, self._context_length)
        if len(prompt_ids) == self._context_length:
            return [Segment((), (), (), "", "context")] * n
        prompt = np.array(prompt_ids, dtype=np.int64)
        rows = [Row(prompt, params, index) for index in range(n)]
        return await asyncio.gather(*(self._scheduler.turn(self._generator, row) for row in rows))

    async def score(self, row: Tokens, temperature: float = 1.0) -> Tokens:
        """Return the row with the log-probs that the current policy gives its generated tokens at `temperature`."""
        return await self._scheduler.run(lambda: self._trainer.score(row, self.version, temperature))

    async def train_step(self, examples: Sequence[Example], loss: LossSpec, optim: OptimSpec) -> StepStats:
        """One update of the trained weights (Eqs. 18-19); `publish` makes it sampleable."""
        return await self._scheduler.run(lambda: self._trainer.update(examples, loss, optim))

    async def publish(self) -> PolicyRef:
        """Make the trained weights the sampling weights; running turns continue under the new version."""
        await self._scheduler.run(lambda: self._publish(self.version + 1))
        return PolicyRef(self.version)

    def _publish(self, version: int) -> None:
        self._generator.load_weights(merged_weights(self._model), version)
        self._published = self._trainer.updates

    async def save_state(self, path: Path) -> str:
        """Save everything a resume needs; return the URI for `load_state`."""
        await self._scheduler.run(lambda: self._save(Path(path)))
        return str(path)

    def _save(self, path: Path) -> None:
        if self._published != self._trainer.updates:
            raise ValueError("save_state: the weights were trained but not published: call publish() first")
        trainer = self._trainer
        moments = {
            f"{kind}.{name}": tensor
            for name, parameter in trainer.parameters.items()
            for kind, tensor in trainer.optimizer.state[parameter].items()
        }
        facts: dict[str, int | str] = {
            "version": self.version,
            "updates": trainer.updates,
            "failures": trainer.failures,
            **self._foundation,
        }
        write_state(path, {WEIGHTS: trainer.parameters, MOMENTS: moments}, facts)

    async def load_state(self, uri: str) -> int:
        """Restore the state of `save_state` exactly; return the policy version."""
        await self._scheduler.run(lambda: self._load(Path(uri)))
        return self.version

    def _load(self, path: Path) -> None:
        files, facts = read_state(path)
        weights, trainer = files[WEIGHTS], self._trainer
        if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in trainer.parameters.items()}:
            raise ValueError(
                f"{path} holds the state of another model or adapter: build the engine as the saved run did"
            )
        for name, own in self._foundation.items():
            if facts.get(name, own) != own:
                raise ValueError(
                    f"{path} was saved with another {name} ({facts[name]}, now {own}): load the run's own model"
                )
        with torch.no_grad():
            for name, parameter in trainer.parameters.items():
                parameter.copy_(weights[name])
        trainer.optimizer.state.clear()
        for key, tensor in files[MOMENTS].items():
            kind, name = key.split(".", 1)
            trainer.optimizer.state[trainer.parameters[name]][kind] = tensor.to(self._device)
        trainer.updates, trainer.failures = int(facts["updates"]), int(facts["failures"])
        self._publish(int(facts["version"]))

    async def export_hf(self, path: Path) -> Path:
        """Export the trained model as a folder that transformers loads."""
        await self._scheduler.run(lambda: save(self._model, self._tokenizer, Path(path)))
        return Path(path)

    async def export_adapter(self, path: Path) -> Path:
        """Write the trained adapter as a folder that peft loads onto the base model."""
        await self._scheduler.run(lambda: save_adapter(self._model, self._tokenizer, Path(path)))
        return Path(path)

    def close(self) -> None:
        """Stop the engine's thread."""
        self._scheduler.close()


def _usable(device: str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise ValueError(f"the device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _checkpoint_layers(model: Any) -> None:
    """Recompute activations in the backward pass; only those layers enter training mode, dropout stays off."""
    model.gradient_checkpointing_enable()
    for module in model.modules():
        if getattr(module, "gradient_checkpointing", False):
            module.training = True


def _end_ids(tokenizer: Any, model: Any) -> set[int]:
    """Return every end-of-sequence id of the tokenizer and the generation config."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    listed = configured if isinstance(configured, list) else [configured]
    return {i for i in (*listed, tokenizer.eos_token_id) if i is not None}
