"""Show messages of ARISE's loggers on the display of a run.

INFO and above is meant for the user and appears on the display; DEBUG is for developers. Records of a wait go to
`step`, which draws them, and never become lines of text.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from arise.text.progress import STEP, Step

SHOWN = "shown_by_display"
"""Attribute of a record that a display has shown, so that no other handler repeats it."""


class _ToDisplay(logging.Handler):
    def __init__(self, show: Callable[[str], None] | None, step: Callable[[Step], None] | None) -> None:
        super().__init__(logging.INFO)
        self._show, self._step = show, step

    def emit(self, record: logging.LogRecord) -> None:
        step = getattr(record, STEP, None)
        if step is not None:
            if self._step:
                self._step(step)
        elif self._show:
            setattr(record, SHOWN, True)
            self._show(record.getMessage())


@contextmanager
def shown_by(show: Callable[[str], None] | None = None, step: Callable[[Step], None] | None = None) -> Iterator[None]:
    """Pass every message of `arise.*` loggers at INFO or above to `show`, and progress to `step`."""
    logger, handler = logging.getLogger("arise"), _ToDisplay(show, step)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
