"""`kill -9` at the moment of a sandbox's start in which bubblewrap alone would leave a process asleep for good."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from arise.sandbox import BubblewrapPool, SandboxLost
from arise.sandbox.launch import start
from tests.killed_start import SECONDS, companions, held_start, of, wait_for, write_bwrap

OWNER = """
import asyncio
from arise.sandbox import BubblewrapPool

async def main():
    async with BubblewrapPool(1, {}):
        pass

asyncio.run(main())
"""
GUARDED = 'folders=("/logs",), shown=("/tests",), guard=("/logs", "/tests")'


@pytest.mark.parametrize("arguments", ["", GUARDED], ids=["agent", "verifier"])
def test_nothing_is_left_although_no_other_run_starts(arguments: str, tmp_path: Path) -> None:
    with held_start(tmp_path, OWNER.format(arguments)) as owner:
        assert len(companions(owner.pid)) == 1
        owner.kill()
        owner.wait()
        assert wait_for(owner.pid, there=False)
        deadline = time.monotonic() + SECONDS
        while companions(owner.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert companions(owner.pid) == []


@pytest.mark.parametrize("arguments", ["", GUARDED], ids=["agent", "verifier"])
def test_the_next_start_ends_it_where_the_companion_was_killed_too(arguments: str, tmp_path: Path) -> None:
    async def open_and_close() -> None:
        async with BubblewrapPool(1):
            pass

    with held_start(tmp_path, OWNER.format(arguments)) as owner:
        for pid in companions(owner.pid):
            os.kill(pid, signal.SIGKILL)
        asyncio.run(open_and_close())
        assert of(owner.pid) != []  # its owner lives
        owner.kill()
        owner.wait()
        asyncio.run(open_and_close())
        assert wait_for(owner.pid, there=False)


def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_bwrap(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    async def body() -> None:
        pool = BubblewrapPool(1)
        starting = asyncio.create_task(start(pool.layout, pool.cgroups))
        for _ in range(500):
            if of(os.getpid()):
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        assert len(of(os.getpid())) == 1
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, SandboxLost):
            await starting

    asyncio.run(body())
    assert wait_for(os.getpid(), there=False)
