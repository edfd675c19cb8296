"""Terminal output of a running comparison: events as lines, and one status line."""

import time
from types import TracebackType

from rich.console import Console

QUIET_SECONDS = 60.0
"""Interval between status lines if the output is not a terminal."""


class Progress:
    """A live status line on a terminal, occasional plain lines elsewhere."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._console = Console(stderr=to_stderr, highlight=False, soft_wrap=True)
        self._status = self._console.status("") if self._console.is_terminal else None
        self._shown = time.monotonic()

    def __enter__(self) -> "Progress":
        if self._status:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._status:
            self._status.stop()

    def tell(self, line: str) -> None:
        """Print an event."""
        self._console.print(line, markup=False)

    def show(self, line: str) -> None:
        """Update the status line."""
        if self._status:
            self._status.update(line)
        elif time.monotonic() - self._shown >= QUIET_SECONDS:
            self._shown = time.monotonic()
            self._console.print(line, markup=False)
