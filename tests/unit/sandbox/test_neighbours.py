"""What one sandbox cannot take from another: processors, time limits, and what the kernel counts by user."""

import asyncio
import resource
import statistics
import time
from pathlib import Path

import pytest

from arise.sandbox import BubblewrapPool, BubblewrapSandbox
from arise.sandbox.cgroup import find_cgroups
from arise.sandbox.usage import MAX_STRETCH

LOOPS = {
    "in one session": "for i in $(seq 120); do (while :; do :; done) & done; echo started; sleep 60",
    "in a session each": "for i in $(seq 120); do setsid sh -c 'while :; do :; done' & done; echo started; sleep 60",
}
COMMAND = "python3 -c 'sum(range(2 * 10**6))'"


async def seconds_of(box: BubblewrapSandbox, count: int = 7) -> float:
    """The median time of the command in a sandbox."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        assert (await box.run(COMMAND, 60)).exit_code == 0
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@pytest.mark.parametrize("loops", LOOPS.values(), ids=LOOPS.keys())
def test_120_busy_loops_slow_a_neighbour_by_at_most_2x(loops: str) -> None:
    async def slowdown() -> float:
        async with BubblewrapPool(2) as pool:
            hog, neighbour = await pool.open(), await pool.open()
            alone = await seconds_of(neighbour)
            busy = asyncio.create_task(hog.run(loops, 60))
            await asyncio.sleep(1.0)
            beside = await seconds_of(neighbour)
            await hog.end()
            await asyncio.gather(busy, return_exceptions=True)
            return beside / statistics.mean((alone, await seconds_of(neighbour)))

    found = find_cgroups()
    assert found is not None
    assert found.shares, "this machine has no cpu control group, and nothing would divide its processors"
    # Other work on the machine may come and go between the two measurements: one undisturbed trial is enough.
    trials: list[float] = []
    while not trials or (min(trials) > 2.0 and len(trials) < 6):
        trials.append(asyncio.run(slowdown()))
    assert min(trials) <= 2.0, trials


async def beside_loops(command: str, timeout: float) -> tuple[float, str]:
    """How long a command took in a sandbox without protection from a neighbour's 24 loops, and how it ended."""
    pool = BubblewrapPool(2)
    pool.cgroups = None
    async with pool:
        hog, neighbour = await pool.open(), await pool.open()
        busy = asyncio.create_task(hog.run(LOOPS["in a session each"].replace("120", "24"), 60))
        await asyncio.sleep(1.0)
        began = time.monotonic()
        result = await neighbour.run(command, timeout)
        taken = time.monotonic() - began
        await hog.end()
        await asyncio.gather(busy, return_exceptions=True)
        return taken, result.ended


STARVED = {
    "one program": "python3 -c 'import time\nwhile time.process_time() < 0.15: pass'",
    "a chain of short programs": "for i in $(seq 60); do /bin/true; done",
}


@pytest.mark.parametrize("command", STARVED.values(), ids=STARVED.keys())
def test_waiting_for_a_processor_does_not_count_towards_a_time_limit(command: str) -> None:
    """The limit is half of what the command takes beside the loops, whatever else the machine is doing."""
    trials: list[tuple[float, float, str]] = []
    while len(trials) < 5:
        needed, ended = asyncio.run(beside_loops(command, 60.0))
        assert ended == "exit"
        taken, ended = asyncio.run(beside_loops(command, needed / 2))
        trials.append((needed, taken, ended))
        # Other work may come and go between the two: one trial that took as long as the first is enough.
        if ended == "exit" and taken > needed / 2:
            return
    raise AssertionError(f"needed, taken, ended: {trials}")


def shortest(command: str, timeout: float, most: float) -> float:
    """The shortest time until a command met its time limit; other work on the machine may come and go."""
    trials: list[float] = []
    while not trials or (min(trials) >= most and len(trials) < 5):
        taken, ended = asyncio.run(beside_loops(command, timeout))
        assert ended == "timeout"
        trials.append(taken)
    return min(trials)


def test_sleeping_counts_however_busy_the_neighbour() -> None:
    assert shortest("sleep 30", 1.0, 2.5) < 2.5


def test_no_time_limit_is_stretched_for_ever() -> None:
    most = 0.5 * MAX_STRETCH + 2.0
    assert shortest("while :; do :; done", 0.5, most) < most


def test_computing_counts_in_full() -> None:
    async def body() -> None:
        async with BubblewrapPool(1) as pool:
            assert (await (await pool.open()).run("while :; do :; done", 1.0)).ended == "timeout"

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    asyncio.run(body())
    assert spent() - before < 1.5, "on however busy a machine, a limit of 1 s is used up by 1 s of computing"


TAKE_INOTIFY = """python3 -c 'import ctypes, sys, time
libc, taken = ctypes.CDLL(None), 0
while taken < 400 and libc.inotify_init() >= 0: taken += 1
print(taken, flush=True)
time.sleep(float(sys.argv[1]))' """


def test_a_sandbox_leaves_inotify_instances_to_the_others() -> None:
    async def body() -> tuple[int, int]:
        async with BubblewrapPool(2) as pool:
            hog, other = await pool.open(), await pool.open()
            holding = asyncio.create_task(hog.run(f"{TAKE_INOTIFY} 1.5", 20))
            await asyncio.sleep(1.0)
            left = await other.run(f"{TAKE_INOTIFY} 0", 20)
            return int((await holding).output), int(left.output)

    taken, left = asyncio.run(body())
    assert taken == left == 8


def test_what_the_kernel_counts_by_user_is_capped_for_each_sandbox() -> None:
    async def body() -> list[str]:
        async with BubblewrapPool(1) as pool:
            return (await (await pool.open()).run("ulimit -i; ulimit -q; ulimit -l", 5)).output.split()

    assert asyncio.run(body()) == ["256", "131072", "64"]


def test_the_machine_keeps_its_own_inotify_limit() -> None:
    before = Path("/proc/sys/user/max_inotify_instances").read_text()

    async def body() -> None:
        async with BubblewrapPool(1) as pool:
            await pool.open()

    asyncio.run(body())
    assert Path("/proc/sys/user/max_inotify_instances").read_text() == before
