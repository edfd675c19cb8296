"""Long waits on the screen: how far each is, and about how long it still takes."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arise.observe.messages import shown_by
from arise.text import numbers
from arise.text.progress import Step

if TYPE_CHECKING:
    from rich.progress import TaskID

LINE_EVERY = 10.0
"""Seconds between two lines about the same wait, where no bar can be drawn."""


@dataclass(frozen=True)
class Wait:
    """A wait under way, with the seconds since it began."""

    step: Step
    elapsed: float

    @property
    def left(self) -> float | None:
        """Return the seconds it will still take at its mean pace; None before the first part is done."""
        done, total = self.step.done, self.step.total
        return self.elapsed / done * (total - done) if done else None

    def __str__(self) -> str:
        left = f"{numbers.duration(self.elapsed)} so far"
        if self.left is not None:
            left = f"about {numbers.duration(self.left)} left"
        return f"{self.step.what}: {self.step.done} of {self.step.total}, {left}"


class Waits:
    """The waits under way, by name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[str, float] = {}
        self._steps: dict[str, Step] = {}
        self._told: dict[str, float] = {}

    def take(self, step: Step) -> None:
        """Note how far a wait is."""
        if step.over:
            for known in (self._began, self._steps, self._told):
                known.pop(step.what, None)
        else:
            self._began.setdefault(step.what, self._clock())
            self._steps[step.what] = step

    def under_way(self) -> list[Wait]:
        """Return the waits, the oldest first."""
        now = self._clock()
        return [Wait(step, now - self._began[name]) for name, step in list(self._steps.items())]

    def due(self, step: Step) -> Wait | None:
        """Return the wait of a step if a line about it is due: at most one every `LINE_EVERY` seconds."""
        self.take(step)
        began = self._began.get(step.what)
        if began is None or self._clock() - self._told.get(step.what, began) < LINE_EVERY:
            return None
        self._told[step.what] = self._clock()
        return Wait(step, self._clock() - began)


@contextmanager
def bars(show: Callable[[str], None] | None = None) -> Iterator[None]:
    """Draw every wait as a bar on stderr, if that is a terminal, and pass messages to `show`."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        with shown_by(show):
            yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    both = sys.stdout.isatty()  # a bar must not take the output away from a pipe
    with Drawn(*columns, console=console, transient=True, redirect_stdout=both) as drawn:
        tasks: dict[str, TaskID] = {}

        def step(found: Step) -> None:
            if found.over:
                if found.what in tasks:
                    drawn.remove_task(tasks.pop(found.what))
                return
            if found.what not in tasks:
                tasks[found.what] = drawn.add_task(found.what, total=found.total)
            drawn.update(tasks[found.what], completed=found.done, total=found.total)

        with shown_by(show, step):
            yield
