"""Long waits on the screen: how far each is, and about how long it still takes."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arise.observe.messages import shown_by
from arise.text import numbers
from arise.text.progress import Reached

if TYPE_CHECKING:
    from rich.progress import TaskID

LINE_EVERY = 10.0
"""Seconds between two lines about the same wait, where no bar can be drawn."""


@dataclass(frozen=True)
class Wait:
    """A wait in progress, with the seconds since it began."""

    reached: Reached
    elapsed: float

    @property
    def left(self) -> float | None:
        """Return the seconds it will still take at its mean pace; None before the first part is done."""
        done, total = self.reached.done, self.reached.total
        return self.elapsed / done * (total - done) if done else None

    def __str__(self) -> str:
        left = f"{numbers.duration(self.elapsed)} so far"
        if self.left is not None:
            left = f"about {numbers.duration(self.left)} left"
        return f"{self.reached.what}: {self.reached.done} of {self.reached.total}, {left}"


class Waits:
    """The waits in progress, by name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[str, float] = {}
        self._reached: dict[str, Reached] = {}
        self._told: dict[str, float] = {}

    def take(self, reached: Reached) -> None:
        """Note how far a wait is."""
        if reached.over:
            for known in (self._began, self._reached, self._told):
                known.pop(reached.what, None)
        else:
            self._began.setdefault(reached.what, self._clock())
            self._reached[reached.what] = reached

    def under_way(self) -> list[Wait]:
        """Return the waits, the oldest first."""
        now = self._clock()
        return [Wait(reached, now - self._began[name]) for name, reached in list(self._reached.items())]

    def due(self, reached: Reached) -> Wait | None:
        """Note how far a wait is, and return it if a line about it is due: at most one every `LINE_EVERY` seconds."""
        self.take(reached)
        began = self._began.get(reached.what)
        if began is None or self._clock() - self._told.get(reached.what, began) < LINE_EVERY:
            return None
        self._told[reached.what] = self._clock()
        return Wait(reached, self._clock() - began)


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

        def reached(found: Reached) -> None:
            if found.over:
                if found.what in tasks:
                    drawn.remove_task(tasks.pop(found.what))
                return
            if found.what not in tasks:
                tasks[found.what] = drawn.add_task(found.what, total=found.total)
            drawn.update(tasks[found.what], completed=found.done, total=found.total)

        with shown_by(show, reached):
            yield
