"""The policy behind the endpoint: a sampling engine and the format of its model family."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from arise.endpoint.exchange import Refused
from arise.ports import Format
from arise.types import Capabilities, SamplingParams, Segment
from arise.types.chat import Message

COUNTED_AT_ONCE = 1 << 18


class Samples(Protocol):
    """The engine interface that the endpoint needs."""

    def capabilities(self) -> Capabilities: ...
    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]: ...


@dataclass(frozen=True)
class Policy:
    """Sample turns — `Policy(engine, format)` — with the server's sampling parameters, never the client's."""

    engine: Samples
    format: Format
    model: str = "policy"
    temperature: float = 1.0
    top_p: float = 1.0

    @property
    def window(self) -> int:
        """Return the maximum number of tokens of a prompt and its answer together."""
        return self.engine.capabilities().context_length

    async def sample(self, ids: Sequence[int], max_tokens: int, conversation: str, seed: int) -> Segment:
        """Sample one turn."""
        params = SamplingParams(max_tokens, (), self.temperature, self.top_p, seed, conversation)
        (segment,) = await self.engine.sample(ids, params)
        return segment

    def require_fits(self, messages: Sequence[Message]) -> None:
        """Refuse a huge message before tokenizing it whole, which could take minutes."""
        for message in messages:
            counted = 0
            if len(message.text) <= COUNTED_AT_ONCE:
                continue
            for start in range(0, len(message.text), COUNTED_AT_ONCE):
                # Each cut may split one token in two.
                counted += self.format.count(message.text[start : start + COUNTED_AT_ONCE]) - 2
                if counted > self.window:
                    raise self.too_long(counted)

    def too_long(self, tokens: int) -> Refused:
        """Return the refusal of a prompt that leaves no room in the context window."""
        window = self.window
        said = f"This model's maximum context length is {window} tokens, and the messages have at least {tokens} tokens"
        return Refused("context", f"{tokens} tokens > {window - 1} maximum. {said}.", "messages")
