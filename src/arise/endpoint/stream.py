"""Server-sent events of an answer that is sampled as a whole, with signs of life until it is there.

The answer is committed before its first event, so a client may leave on any event without losing the turn.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
Event = str
"""One event as it stands on the wire."""
DONE: Event = "data: [DONE]\n\n"
KEEP_ALIVE_SECONDS = 10.0


def data(value: Any) -> Event:
    """Write an event that has only data."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def named(name: str, value: Any) -> Event:
    """Write an event with its name."""
    return f"event: {name}\n{data(value)}"


async def streamed(
    answer: Awaitable[T],
    events: Callable[[T], Iterable[Event]],
    failed: Callable[[BaseException], Iterable[Event]],
    keep_alive: str,
    every: float = KEEP_ALIVE_SECONDS,
) -> AsyncIterator[bytes]:
    """Wait for an answer, sending `keep_alive` meanwhile, then send its events, or those of its failure."""
    waiting = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({waiting}, timeout=every))[0]:
            yield keep_alive.encode()
        found = waiting.exception()
        for event in failed(found) if found else events(waiting.result()):
            yield event.encode("utf-8", "replace")
    finally:
        waiting.cancel()
