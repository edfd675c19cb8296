"""Server-sent events of an answer that is sampled as a whole, with keep-alives until it is ready.

The answer is committed before its first event, so a client can disconnect at any event without losing the turn.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
Event = str
"""One event in wire format."""
DONE: Event = "data: [DONE]\n\n"
KEEP_ALIVE_SECONDS = 10.0


def data(value: Any) -> Event:
    """Write an event without a name."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


def named(name: str, value: Any) -> Event:
    """Write an event with a name."""
    return f"event: {name}\n{data(value)}"


async def streamed(
    answer: Awaitable[T],
    events: Callable[[T], Iterable[Event]],
    failed: Callable[[BaseException], Iterable[Event]],
    keep_alive: str,
    every: float = KEEP_ALIVE_SECONDS,
) -> AsyncIterator[bytes]:
    """Send `keep_alive` until the answer is ready, then send its events, or those of its error."""
    waiting = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({waiting}, timeout=every))[0]:
            yield keep_alive.encode()
        found = waiting.exception()
        for event in failed(found) if found else events(waiting.result()):
            yield event.encode("utf-8", "replace")
    finally:
        waiting.cancel()
