"""A conversation as a request to an endpoint."""

from dataclasses import dataclass

from arise.llm.prompt import to_json


@dataclass(frozen=True)
class Conversation:
    """Messages so far, keyed per attempt: two attempts with equal messages still get separate replies."""

    messages: tuple[dict[str, str], ...]
    asker: str
    template_hash: str = ""

    @property
    def distinct(self) -> tuple[str, ...]:
        """Return the cache key of a reply."""
        return self.asker, to_json(self.messages), *([to_json(self.tools)] if self.tools else [])
