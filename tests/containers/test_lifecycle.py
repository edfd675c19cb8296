"""What attempts in images leave behind: nothing, however they end; and images are built once."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from arise.sandbox.containers import ContainerPool
from arise.sandbox.images import OWNER, Images, context_digest
from arise.sandbox.overlay_pool import OverlayPool
from arise.sandbox.owner import owner_mark
from arise.sandbox.programs import EngineFailed, Program
from arise.types import Place, VerifierJob
from tests.containers.base import NAME
from tests.containers.conftest import KINDS, pool_of
from tests.leftovers import groups, temporary_files
from tests.task_folders import DIFF_TEST


def containers(kind: str, mark: str) -> list[str]:
    """Return the containers of one owner; other test workers have theirs."""
    engine = "docker" if kind == "docker" else "podman"
    names = subprocess.run(
        [engine, "ps", "--all", "--filter", f"label={OWNER}", "--format", "{{.Names}}"],
        capture_output=True, text=True, check=True, env=Program(engine).settings(),
    ).stdout.split()  # fmt: skip
    return [name for name in names if name.startswith(mark)]


def mounts(mark: str) -> list[str]:
    return [line for line in Path("/proc/mounts").read_text().splitlines() if f"/{mark}" in line.split()[1]]


def dockerfile(folder: Path, text: str = f"FROM {NAME}\nWORKDIR /app\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(text)
    return folder / "Dockerfile"


def test_concurrent_attempts_share_one_build_and_an_unchanged_task_is_never_built_again(tmp_path: Path) -> None:
    unique = f"FROM {NAME}\nLABEL test={tmp_path}\n"
    place = Place(dockerfile=dockerfile(tmp_path / "a", unique))

    async def ids(count: int) -> tuple[set[str], int]:
        images = Images(Program("podman"))
        found = await asyncio.gather(*(images.get(place) for _ in range(count)))
        return {image.id for image in found}, images.built

    first, built = asyncio.run(ids(8))
    again, rebuilt = asyncio.run(ids(2))
    assert (len(first), built) == (1, 1)
    assert (again, rebuilt) == (first, 0)
    (tmp_path / "a" / "data.csv").write_text("1\n")
    assert asyncio.run(ids(1))[1] == 1
    tags = [f"localhost/arise:{key}" for key in (context_digest(tmp_path / "a")[:40],)]
    subprocess.run(
        ["podman", "rmi", "--force", *tags], capture_output=True, check=False, env=Program("podman").settings()
    )
    subprocess.run(
        ["podman", "rmi", "--force", *first], capture_output=True, check=False, env=Program("podman").settings()
    )


def test_a_dockerfile_that_does_not_build_is_named_with_what_the_engine_said(tmp_path: Path) -> None:
    place = Place(dockerfile=dockerfile(tmp_path / "a", f"FROM {NAME}\nRUN echo the reason; exit 3\n"))
    with pytest.raises(EngineFailed, match=r"(?s)a/Dockerfile cannot be built.*exit status 3|the reason"):
        asyncio.run(Images(Program("podman")).get(place))


def test_an_absent_image_is_not_pulled_when_that_is_forbidden() -> None:
    with pytest.raises(EngineFailed, match="localhost/absent is not on this machine"):
        asyncio.run(Images(Program("podman"), "never").get(Place(image="localhost/absent")))


async def attempt(pool: OverlayPool | ContainerPool, place: Place, tests: Path) -> float:
    box = await pool.open(place)
    try:
        await box.run("(setsid sleep 1000 &); echo 42 > answer.txt; dd if=/dev/zero of=/big bs=1M count=4", 20)
        await box.end()
        run = await pool.verify(box, VerifierJob((tests,), 20, place=place))
        return float(run.rewards[0].data)
    finally:
        await box.close()


def prepare(folder: Path) -> None:
    """Write the tests and the Dockerfile of the attempts."""
    tests = folder / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text(DIFF_TEST)
    (tests / "expected.txt").write_text("42\n")
    dockerfile(folder / "image")


async def attempts(kind: str, count: int, folder: Path, done: Callable[[], None] = lambda: None) -> list[float]:
    """Make attempts, six at a time, every fifth with the public network; call `done` after each."""
    quiet = Place(dockerfile=folder / "image" / "Dockerfile", storage_mb=64, memory_mb=128)
    slots = asyncio.Semaphore(6)
    async with pool_of(kind) as pool:

        async def one(number: int) -> float:
            async with slots:
                place = quiet if number % 5 else replace(quiet, network="public")
                reward = await attempt(pool, place, folder / "tests")
                done()
                return reward

        return await asyncio.gather(*(one(number) for number in range(count)))


def many(kind: str, count: int, folder: Path) -> None:
    prepare(folder)
    assert asyncio.run(attempts(kind, count, folder)) == [1.0] * count
    assert containers(kind, owner_mark()) == []
    assert mounts(owner_mark()) == []


def test_attempts_leave_nothing(kind: str, tmp_path: Path) -> None:
    many(kind, 8, tmp_path)


MIDDLE = """
import asyncio, sys
from pathlib import Path
from tests.containers.test_lifecycle import attempts
asyncio.run(attempts(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), lambda: print("done", flush=True)))
"""


def networks() -> set[int]:
    """Return the processes that connect sandboxes of this process, or of one that is gone, to the public network."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition(" (slirp4netns) ")
            if rest and int(rest.split()[1]) in (1, os.getpid()):
                found.add(int(name))
    return found


def check_killed_in_the_middle(kind: str, count: int, folder: Path) -> None:
    """Kill a run after half of its attempts, make the other half in another, and look for all that both had."""
    prepare(folder)
    before = networks()
    line = [sys.executable, "-c", MIDDLE, kind, str(count), str(folder)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for _ in range(count // 2):
            assert run.stdout.readline() == "done\n"
        run.kill()
    assert asyncio.run(attempts(kind, count - count // 2, folder)) == [1.0] * (count - count // 2)
    mark = f"arise-{run.pid}-"
    deadline = time.monotonic() + 60
    while (_processes(mark) or networks() - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert networks() <= before
    for owner in (mark, owner_mark()):
        assert _processes(owner) == []
        assert containers(kind, owner) == []
        assert groups(owner) == []
        assert temporary_files(owner) == []
        assert mounts(owner) == []


def test_a_run_killed_in_the_middle_of_its_attempts_leaves_nothing(kind: str, tmp_path: Path) -> None:
    check_killed_in_the_middle(kind, 12, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_500_attempts_leave_nothing(kind: str, tmp_path: Path) -> None:
    many(kind, 500, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_500_attempts_in_a_run_that_is_killed_in_the_middle_leave_nothing(kind: str, tmp_path: Path) -> None:
    check_killed_in_the_middle(kind, 500, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("docker")
def test_100_attempts_on_docker_in_a_run_that_is_killed_in_the_middle_leave_nothing(tmp_path: Path) -> None:
    check_killed_in_the_middle("docker", 100, tmp_path)


KILLED = """
import asyncio, sys
from pathlib import Path
from arise.types import Place
from tests.containers.conftest import KINDS, pool_of

async def main():
    async with pool_of(sys.argv[1]) as pool:
        place = Place(dockerfile=Path(sys.argv[2]), storage_mb=64, memory_mb=128)
        boxes = await asyncio.gather(*(pool.open(place) for _ in range(4)))
        print("ready", flush=True)
        await asyncio.gather(*(box.run("sleep 1000", 1000) for box in boxes))

asyncio.run(main())
"""


def test_a_killed_run_leaves_nothing_once_the_next_starts(kind: str, tmp_path: Path) -> None:
    check_killed(kind, tmp_path)


def check_killed(kind: str, tmp_path: Path) -> None:
    """Kill a process that holds four sandboxes, and look for all that it had once another has started."""
    image = dockerfile(tmp_path / "image")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, kind, str(image)], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    mark = f"arise-{process.pid}-"
    deadline = time.monotonic() + 60
    while _processes(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _processes(mark) == []

    async def start_again() -> None:
        async with pool_of(kind):
            pass

    asyncio.run(start_again())
    assert containers(kind, mark) == []
    assert groups(mark) == []
    assert temporary_files(mark) == []
    assert mounts(mark) == []


def _processes(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if f"\0{mark}" in line and "/run/arise" in line:
            found.append(line.replace("\0", " "))
    return found
