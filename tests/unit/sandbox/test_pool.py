"""The warm pool: ready sandboxes, and nothing left whatever ends the process that owns them."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from arise.sandbox import BubblewrapPool, Limits, SandboxLost, SandboxUnavailable
from arise.sandbox.cgroup import find_cgroups
from arise.types import Place
from tests.leftovers import SLEEP, groups, processes_with, temporary_files

OWNER = """
import asyncio, sys
from arise.sandbox import BubblewrapPool
from arise.sandbox.owner import owner_mark

async def main():
    async with BubblewrapPool(2, shown=("/tests",)) as pool:
        box = await pool.open()
        command = asyncio.create_task(box.run(sys.argv[1], 600))
        print(owner_mark(), flush=True)
        await command

asyncio.run(main())
"""


def processes_inside(command: str) -> list[int]:
    """Ids of the processes that are this command, without those that only name it, such as their shell."""
    found = []
    for pid in processes_with(command):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode().replace("\0", " ") == command:
                found.append(pid)
    return found


def wait_until_gone(text: str, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while processes_with(text) and time.monotonic() < deadline:
        time.sleep(0.02)
    return processes_with(text)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_owner(kind: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, f"(setsid {SLEEP} &) ; {SLEEP}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as owner:
        assert owner.stdout is not None
        mark = owner.stdout.readline().decode().strip()
        deadline = time.monotonic() + 30
        while len(processes_inside(SLEEP)) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(processes_inside(SLEEP)) >= 2
        assert temporary_files(mark) != []
        owner.send_signal(kind)
        owner.wait(30)
        assert wait_until_gone(SLEEP, 20) == []
    if (
        kind is not signal.SIGINT
    ):  # the only one that lets the owner tidy up itself; the next owner does it for the others
        asyncio.run(open_and_close())
        deadline = time.monotonic() + 30
        while groups(mark) and time.monotonic() < deadline:  # a group still busy dying is left for the next start
            asyncio.run(open_and_close())
    assert groups(mark) == []
    assert temporary_files(mark) == []


async def open_and_close() -> None:
    async with BubblewrapPool(1):
        pass


def test_sandboxes_are_fresh_and_apart(tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("given\n")
    (tmp_path / "Dockerfile").write_text("FROM x")

    async def body() -> list[str]:
        async with BubblewrapPool(2) as pool:
            one, two = await asyncio.gather(*(pool.open(Place(tmp_path, ("Dockerfile",))) for _ in range(2)))
            await one.run("echo changed > given.txt; touch /tmp/one /dev/shm/one", 5)
            return [(await box.run("cat given.txt; ls /app /tmp /dev/shm", 5)).output for box in (one, two)]

    one, two = asyncio.run(body())
    assert one.split() == ["changed", "/app:", "given.txt", "/dev/shm:", "one", "/tmp:", "one"]
    assert two.split() == ["given", "/app:", "given.txt", "/dev/shm:", "/tmp:"]


def test_pool_closes_what_was_not_closed_even_after_an_exception() -> None:
    async def body() -> None:
        async with BubblewrapPool(2) as pool:
            box = await pool.open()
            await box.run(f"{SLEEP} &", 5)
            raise KeyError("a fault of the caller")

    with pytest.raises(KeyError):
        asyncio.run(body())
    assert processes_with(SLEEP) == []


def test_a_sandbox_that_died_while_waiting_is_not_used() -> None:
    async def body() -> str:
        async with BubblewrapPool(1) as pool:
            waiting = pool._ready._queue[0]  # type: ignore[attr-defined]
            signal.pidfd_send_signal(waiting.pidfds[0], signal.SIGKILL)
            async with asyncio.timeout(30):
                while waiting.alive:
                    await asyncio.sleep(0.01)
            return (await (await pool.open()).run("echo fresh", 5)).output

    assert asyncio.run(body()) == "fresh\n"


def test_open_gives_a_fault_for_files_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 200_000)

    async def body() -> None:
        async with BubblewrapPool(1, Limits(disk_bytes=64 * 1024)) as pool:
            with pytest.raises(SandboxLost, match="could not be copied to /app"):
                await pool.open(Place(tmp_path))
            with pytest.raises(SandboxLost, match="no-such-folder"):
                await pool.open(Place(tmp_path / "no-such-folder"))

    asyncio.run(body())


def test_what_the_host_lacks_is_a_fault_and_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")

    async def body() -> None:
        pool = BubblewrapPool(1, shown=("/tests",))
        with pytest.raises(SandboxLost, match="could not be started"):
            await pool.open()
        monkeypatch.undo()
        assert (await (await pool.open()).run("echo fixed", 5)).output == "fixed\n"
        await pool.close()

    asyncio.run(body())


def test_a_closed_pool_gives_no_sandbox() -> None:
    async def body() -> None:
        async with BubblewrapPool(1) as pool:
            pass
        with pytest.raises(SandboxLost, match="closed"):
            await pool.open()

    asyncio.run(body())


def test_waiters_for_a_sandbox_get_an_error_when_the_pool_closes() -> None:
    async def body() -> list[object]:
        async with BubblewrapPool(1) as pool:
            waiting = [asyncio.create_task(pool.open()) for _ in range(6)]
            await asyncio.sleep(0.02)
        async with asyncio.timeout(30):
            return await asyncio.gather(*waiting, return_exceptions=True)

    results = asyncio.run(body())
    assert any(isinstance(result, SandboxLost) for result in results)


def test_missing_bubblewrap_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        asyncio.run(open_and_close())


@pytest.mark.parametrize(
    ("said", "fault", "words"),
    [
        ("bwrap: No permissions to create new namespace", SandboxUnavailable, "In a container"),
        ("bwrap: setting up uid map: Permission denied", SandboxUnavailable, "apparmor_restrict_unprivileged_userns=0"),
        ("bwrap: Can't find source path /usr: No such file", SandboxLost, "did not start"),
    ],
)
def test_refusal_is_explained(
    said: str, fault: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(SandboxLost, match=words) as caught:
        asyncio.run(open_and_close())
    assert caught.type is fault


def test_without_control_groups_it_says_so_and_limits_each_process() -> None:
    async def body() -> tuple[tuple[str, ...], str]:
        pool = BubblewrapPool(1)
        pool.cgroups = None
        async with pool:
            box = await pool.open()
            return pool.notes, (await box.run("ulimit -v; ulimit -u", 5)).output

    notes, limits = asyncio.run(body())
    assert any("control groups" in note for note in notes)
    assert limits.split() == [str(Limits().memory_bytes // 1024), str(Limits().processes + 1)]


def many(count: int) -> None:
    async def one(pool: BubblewrapPool, number: int) -> str:
        box = await pool.open()
        result = await box.run(f"echo {number} > f; sleep 0.2; cat f", 60)
        await box.close()
        return result.output

    async def body() -> list[str]:
        async with BubblewrapPool(8) as pool:
            return await asyncio.gather(*(one(pool, number) for number in range(count)))

    assert asyncio.run(body()) == [f"{number}\n" for number in range(count)]


def test_32_at_once() -> None:
    many(32)


@pytest.mark.slow
def test_300_at_once() -> None:
    async def body() -> set[int]:
        async with BubblewrapPool(8) as pool:
            boxes = await asyncio.gather(*(pool.open() for _ in range(300)))
            results = await asyncio.gather(*(box.run("sleep 0.5; echo $((6 * 7))", 120) for box in boxes))
            return {int(result.output) for result in results}

    assert asyncio.run(body()) == {42}


def test_a_death_that_came_while_this_process_was_stopped_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arise.sandbox.bubblewrap.DEATH_SECONDS", 0.1)

    async def stopped_while_closing() -> None:
        async with BubblewrapPool(1) as pool:
            sandbox = await pool.open()
            closing = asyncio.create_task(sandbox.close())
            await asyncio.sleep(0)  # the kill is sent
            time.sleep(0.5)  # as if a debugger or a sleeping laptop held this process
            await closing

    asyncio.run(stopped_while_closing())


def test_a_group_whose_processes_were_still_dying_is_removed_at_the_end() -> None:
    cgroups = find_cgroups()
    if cgroups is None:
        pytest.skip("no writable control groups")
    left = cgroups.parents[0] / "arise-999999999-1-0"

    async def opened_while_it_is_busy() -> None:
        with subprocess.Popen(["sleep", "600"]) as dying:
            (left / "cgroup.procs").write_text(str(dying.pid))
            async with BubblewrapPool(1):
                assert left.is_dir()
                dying.kill()
                dying.wait()

    left.mkdir()
    asyncio.run(opened_while_it_is_busy())
    assert not left.exists()
