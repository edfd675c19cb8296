"""Show messages of ARISE's loggers on the display of a run.

INFO and above is meant for the user and appears on the display; DEBUG is for developers.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHOWN = "shown_by_display"
"""Attribute of a record that a display has shown, so that no other handler repeats it."""


class _ToDisplay(logging.Handler):
    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        setattr(record, SHOWN, True)
        self._show(record.getMessage())


@contextmanager
def shown_by(show: Callable[[str], None]) -> Iterator[None]:
    """Pass every message of `arise.*` loggers at INFO or above to `show` within this context."""
    logger, handler = logging.getLogger("arise"), _ToDisplay(show)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
