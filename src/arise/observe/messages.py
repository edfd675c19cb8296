"""Show messages of ARISE's loggers on the display of a run.

INFO and above is meant for the user and appears on the display; DEBUG is for developers. Records of a wait go to
`reached`, which draws them, and never become lines of text.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arise.text.progress import REACHED, Reached

SHOWN = "shown_by_display"
"""Attribute of a record that a display has shown, so that no other handler repeats it."""


class _ToDisplay(logging.Handler):
    def __init__(self, show: Callable[[str], None] | None, reached: Callable[[Reached], None] | None) -> None:
        super().__init__(logging.INFO)
        self._show, self._reached = show, reached

    def emit(self, record: logging.LogRecord) -> None:
        reached = getattr(record, REACHED, None)
        if reached is not None:
            if self._reached:
                self._reached(reached)
        elif self._show:
            setattr(record, SHOWN, True)
            self._show(record.getMessage())


@contextmanager
def shown_by(
    show: Callable[[str], None] | None = None, reached: Callable[[Reached], None] | None = None
) -> Iterator[None]:
    """Pass every message of `arise.*` loggers at INFO or above to `show`, and progress to `reached`."""
    logger, handler = logging.getLogger("arise"), _ToDisplay(show, reached)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
