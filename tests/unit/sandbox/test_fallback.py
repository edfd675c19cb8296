"""Sandboxes where no compiler is at hand: the server inside is a Python program with the same behaviour."""

import asyncio
import os
import subprocess
import sys

import pytest

from arise.sandbox import BubblewrapPool, layout, outside, pool
from arise.types import CommandResult

SAME_TESTS = ("tests/unit/sandbox", "tests/unit/rollouts/test_forgery.py", "tests/unit/rollouts/test_dodges.py")


@pytest.mark.parametrize("native", [True, False])
def test_either_server_runs_commands(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        for module in (layout, outside, pool):
            monkeypatch.setattr(module, "native_server", lambda: None)

    async def run() -> list[CommandResult]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            commands = ("echo out; echo err >&2; exit 3", "kill -9 $$", "cat /proc/1/cmdline", "yes | head -c 9")
            return [await box.run(command, 20) for command in commands] + [await box.run("sleep 30", 0.2)]

    plain, killed, hidden, pipe, late = asyncio.run(run())
    assert (plain.output, plain.exit_code) == ("out\nerr\n", 3)
    assert killed.exit_code == 137
    assert hidden.exit_code != 0
    assert "Broken pipe" in pipe.output  # the signal is ignored, under either server
    assert late.ended == "timeout"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_python_server_passes_the_same_tests() -> None:
    line = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *SAME_TESTS]
    done = subprocess.run(line, env={**os.environ, "ARISE_NATIVE": "0"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
