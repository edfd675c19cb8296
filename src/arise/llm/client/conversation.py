"""A conversation as a request to an endpoint."""

from dataclasses import dataclass
from typing import Any

from arise.llm.prompts.prompt import to_json


@dataclass(frozen=True)
class Conversation:
    """Messages so far, keyed per attempt: two attempts with equal messages still get separate replies."""

    messages: tuple[dict[str, Any], ...]
    asker: str
    template_hash: str = ""
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def distinct(self) -> tuple[str, ...]:
        """Return the cache key of a reply."""
        return self.asker, to_json(self.messages), *([to_json(self.tools)] if self.tools else [])
