"""An event loop whose clock jumps to the next timer: sleeps cost nothing, and every run of it has the same timing."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jumping(selectors.SelectSelector):
    """Where the loop would wait for a timer, the clock moves instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self) -> float:
        """Seconds of all timers that were waited for."""
        return self._clock.now


def instantly(coroutine: Coroutine[Any, Any, Result]) -> tuple[Result, float]:
    """What the coroutine gives, and the seconds that it would have taken."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        result = runner.run(coroutine)
        return result, runner.get_loop().time()
