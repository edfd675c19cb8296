"""Progress of a slow judge within an iteration."""

import asyncio
import time
from collections.abc import Callable

from arise.ports import Judge
from arise.text.numbers import duration
from arise.types import Judgment, Pool, Rollout, Task

EVERY = 20.0
"""Seconds between two messages; an iteration that is judged faster has none."""


class SlowJudge:
    """Judge with another judge, and tell now and then how far it is while rollouts wait for it."""

    def __init__(self, judge: Judge, tell: Callable[[str], None], every: float = EVERY) -> None:
        self._judge, self._tell, self._every = judge, tell, every
        self.started = self.done = 0
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def identity(self) -> str:
        return self._judge.identity

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        """Judge one rollout; the counts start anew when nothing is waiting."""
        if self.started == self.done:
            self.started = self.done = 0
            self._began = time.monotonic()
            self._wait()
        self.started += 1
        try:
            return await self._judge.judge(task, rollout, pool)
        finally:
            self.done += 1
            if self.started == self.done and self._timer:
                self._timer.cancel()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every, self._say)

    def _say(self) -> None:
        took = time.monotonic() - self._began
        left = f", about {duration(took / self.done * (self.started - self.done))} left" if self.done else ""
        self._tell(f"judge: {self.done} of {self.started} rollouts judged after {duration(took)}{left}")
        self._wait()
