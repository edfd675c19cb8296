"""Logging of the command line: one handler on stderr.

The display of a run shows its progress and notices; this handler writes the remaining records.
"""

import logging
import sys
from enum import StrEnum
from typing import TextIO

from arise.observe.messages import SHOWN
from arise.text.escape import visible
from arise.text.progress import REACHED
from arise.text.secrets import redact


class LogLevel(StrEnum):
    """The values of `--log-level`."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _Stderr(logging.StreamHandler[TextIO]):
    """Write escaped and redacted records to the current `sys.stderr`, except those of waits and those already shown."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        self.addFilter(lambda record: not getattr(record, SHOWN, False) and not hasattr(record, REACHED))

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
