"""Progress of a long wait, as log records that a display draws as a bar with an estimate."""

import logging
from dataclasses import dataclass

REACHED = "reached_by_a_wait"
"""Attribute of a record that reports progress; its text is not worth a line."""


@dataclass(frozen=True)
class Reached:
    """How far a wait is — `Reached("warm start: demonstrations", 320, 900)`; `over` ends it, complete or not."""

    what: str
    done: int
    total: int
    over: bool = False


class Progress:
    """Report a wait of `total` equal parts: `with Progress(log, "exporting", 64) as wait: ... wait.add()`.

    Without `with`, the wait begins with the first `expect` or `add`, and is over when all its parts are done.
    """

    def __init__(self, log: logging.Logger, what: str, total: int = 0) -> None:
        self._log, self._what, self._total, self._done = log, what, total, 0

    def __enter__(self) -> "Progress":
        self._report()
        return self

    def __exit__(self, *error: object) -> None:
        self._report(over=True)

    def add(self, done: int = 1) -> None:
        """Report that `done` more parts are done."""
        self._done += done
        self._report(over=self._done >= self._total)

    def expect(self, more: int) -> None:
        """Add parts that were not known before; after a wait is over, a new one begins."""
        if self._done >= self._total:
            self._done = self._total = 0
        self._total += more
        self._report()

    def _report(self, over: bool = False) -> None:
        reached = Reached(self._what, self._done, self._total, over)
        self._log.info("%s: %d of %d", self._what, self._done, self._total, extra={REACHED: reached})
