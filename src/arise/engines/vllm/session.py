"""The state of a fleet: its servers, and the client and locks of an event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2 as httpx

from arise.engines.remote.processes import Process
from arise.engines.vllm.server import ServerDown

Answer = TypeVar("Answer")
MAX_SILENCES = 2
"""Health checks in a row that a server may leave unanswered while it works."""
log = logging.getLogger(__name__)


@dataclass
class Slot:
    """One position in the fleet: the server that fills it now and its load."""

    number: int
    address: str = ""
    process: Process | None = None
    load: int = 0
    restarts: int = 0
    version: int = -1
    """The version of its weights; -1 while it is down."""


class Session:
    """The client and the locks of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self.client = httpx.AsyncClient(timeout=httpx.Timeout(seconds, connect=10.0), limits=limits)
        self.open, self.changing = asyncio.Event(), asyncio.Lock()
        self.open.set()
        self.restoring: dict[int, asyncio.Task[None]] = {}


def note_failure(task: "asyncio.Task[None]") -> None:
    """Log why a server could not be restored."""
    with suppress(asyncio.CancelledError):
        if (error := task.exception()) is not None:
            log.warning("a sampling server did not come back: %s", str(error).partition("\n")[0])


async def while_healthy(
    call: Coroutine[Any, Any, Answer], healthy: Callable[[], Awaitable[bool]], address: str, every: float
) -> Answer:
    """Await a call; raises ServerDown if the server leaves health checks unanswered meanwhile.

    A machine that loses its power or its network never closes a connection.
    """
    asked, silences = asyncio.create_task(call), 0
    try:
        while not (await asyncio.wait([asked], timeout=every))[0]:
            silences = 0 if await healthy() else silences + 1
            if silences == MAX_SILENCES:
                raise ServerDown(f"{address} has stopped answering")
        return await asked
    finally:
        asked.cancel()
