"""Processes of other environments, each behind a guard that ends it with this one."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
TAIL_BYTES = 3000
QUICK_START = {"cpu": {"TORCHDYNAMO_DISABLE": "1"}}
"""Environment variables by device. On a CPU, libraries would compile C++ for minutes before their first result."""


class Process:
    """One guarded process; its output goes to `log`."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        self._guard = subprocess.Popen(
            [sys.executable, "-P", "-S", "-E", str(GUARD), str(log), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**kept, **environment},
            start_new_session=True,
        )

    @property
    def running(self) -> bool:
        return self._guard.poll() is None

    def end(self) -> None:
        """End the process and all that it started; returns when they are gone."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def said(self) -> str:
        """Return the last lines of its output, for a message."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return "\n".join(lines[-6:])
