"""Logging of the command line: one handler on stderr.

What the user should know during a run is shown by its display; this handler writes the rest.
"""

import logging
import sys
from enum import StrEnum
from typing import TextIO

from arise.observe.messages import SHOWN
from arise.text.escape import visible
from arise.text.secrets import redact


class LogLevel(StrEnum):
    """What `--log-level` accepts."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to stderr as it is now, escaped and without keys; skips what a display has already shown."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        self.addFilter(lambda record: not getattr(record, SHOWN, False))

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return visible(redact(super().format(record)))


def configure(level: LogLevel) -> None:
    """Log `arise.*` at `level` and other libraries at ERROR; calling it again replaces the level."""
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _Stderr)]:
        root.removeHandler(handler)
    root.addHandler(_Stderr())
    root.setLevel(logging.ERROR)
    logging.getLogger("arise").setLevel(level.value.upper())
