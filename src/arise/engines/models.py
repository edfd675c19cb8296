"""Models by name: what is built in, what was pulled, any local folder or hub name; one clear message when it fails."""

from dataclasses import dataclass
from typing import Any

from arise.engines.weights import LoraSpec


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with its tokenizer — `EmbeddedEngine(m.model, m.tokenizer, lora=m.lora)` trains it as is usual for it."""

    name: str
    model: Any
    tokenizer: Any
    lora: LoraSpec | None = None
