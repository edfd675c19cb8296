"""The driver's view of a policy that other processes hold."""

from dataclasses import dataclass
from typing import Any

from arise.ports import Format


@dataclass(frozen=True)
class Policy:
    """What the driver knows about the model: its initial folder, tokenizer, window and end-of-turn tokens."""

    folder: str
    tokenizer: Any
    window: int
    vocabulary: int
    end_ids: frozenset[int]
    chat_format: Format | None = None
