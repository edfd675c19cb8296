"""The policy as the driver of other processes knows it."""

from dataclasses import dataclass
from typing import Any

from arise.ports import Format


@dataclass(frozen=True)
class Policy:
    """What the driver knows of the model: where it starts, its tokenizer, its window and which tokens end a turn."""

    folder: str
    tokenizer: Any
    window: int
    vocabulary: int
    end_ids: frozenset[int]
    chat_format: Format | None = None
