"""`arise` commands, each in a separate process that is forked from one with torch already imported.

A fresh interpreter spends three seconds on imports, a fork none. Memory, process id, signals and exit code are its own.
"""

import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
SECONDS, KILLED = 280, -signal.SIGKILL
_forks = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Command:
    """`arise ARGUMENTS`, running."""

    def __init__(self, environment: dict[str, str], *arguments: str, folder: Path | None = None) -> None:
        _serve()
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        self._out, self._errors = Path(self._folder.name) / "stdout", Path(self._folder.name) / "stderr"
        given = (list(arguments), environment, str(folder or Path.cwd()), str(self._out), str(self._errors))
        self._process = _forks.Process(target=_run, args=given, daemon=True)
        self._process.start()

    def wait_for_line(self, start: str, seconds: float = SECONDS) -> None:
        """Wait until the command has printed a line that begins with `start`."""
        deadline = time.monotonic() + seconds
        while not any(line.startswith(start) for line in _text(self._out).splitlines()):
            if not self._process.is_alive() or time.monotonic() > deadline:
                raise AssertionError(f"no line {start!r}: {self.kill_after(0)}")
            time.sleep(0.01)

    def printed(self) -> str:
        """Return what the command has printed so far."""
        return _text(self._out)

    def interrupt(self) -> None:
        """Send the signal of Ctrl-C."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGINT)

    def kill_after(self, seconds: float) -> Done:
        """Wait for the end of the command, and kill it by force if it takes longer than `seconds`."""
        self._process.join(seconds)
        self._process.kill()
        self._process.join()
        assert self._process.exitcode is not None
        with self._folder:
            return Done(self._process.exitcode, _text(self._out), _text(self._errors))

    def wait(self, seconds: float = SECONDS) -> Done:
        """Wait for the end of the command; fail if it takes longer than `seconds`."""
        done = self.kill_after(seconds)
        assert done.returncode != KILLED, f"it did not end within {seconds} s: {done}"
        return done


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _serve() -> None:
    """Start the process that all commands are forked from; it needs the environment that libraries read on import."""
    _forks.set_forkserver_preload(["tests.e2e.preloaded"])
    before = dict(os.environ)
    os.environ.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(arguments: list[str], environment: dict[str, str], folder: str, out: str, errors: str) -> None:
    """The whole life of a command's process."""
    os.environ.pop("PYTHONPATH")
    os.environ.update(environment)  # and keep what `arise.engines` set on import
    os.chdir(folder)
    for descriptor, path in ((1, out), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from arise.cli.main import main
    from arise.sandbox import launch

    # On a busy machine a sandbox that starts late would be a fault, and a fault changes what is collected.
    launch.START_SECONDS = 600.0
    sys.argv = ["arise", *arguments]
    main()
