"""What sandboxes cost: `python -m benchmarks.sandbox` prints median and 95th percentile in milliseconds.

`python -m benchmarks.sandbox IMAGE` compares the start of an attempt by kind, on an image of this machine.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.verifiers import bubblewrap_verifier

from arise.rollouts.verifier import Verifier
from arise.sandbox import BubblewrapPool
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.containers import ContainerPool
from arise.sandbox.image_sandbox import ImageSandbox
from arise.sandbox.launch import start
from arise.sandbox.overlay_pool import OverlayPool
from arise.types import Place, Task, TaskSpec, VerifierSpec

ROUNDS = 40
SETTLE = 0.1  # until the pool is full again, so that its refilling is not measured along
TEST = "if [ -s answer.txt ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


async def timed(action: Awaitable[object]) -> float:
    """Milliseconds that one action takes."""
    begun = time.perf_counter()
    await action
    return (time.perf_counter() - begun) * 1000


def row(name: str, milliseconds: list[float]) -> str:
    return f"{name:<44}{statistics.median(milliseconds):>9.2f}{statistics.quantiles(milliseconds, n=20)[-1]:>9.2f}"


async def one_at_a_time(files: Path, tests: TaskSpec) -> list[str]:
    """Each step of a rollout by itself, on an otherwise idle machine."""
    steps: dict[str, list[float]] = {"cold": [], "open": [], "run": [], "verify": [], "close": []}
    async with BubblewrapPool(4) as pool, bubblewrap_verifier(4) as verifier:
        for _ in range(ROUNDS):
            await asyncio.sleep(SETTLE)
            begun = time.perf_counter()
            box = await pool.open(Place(files))
            steps["open"].append((time.perf_counter() - begun) * 1000)
            await asyncio.sleep(SETTLE)
            steps["run"] += [await timed(box.run("echo 42 > answer.txt", 10)) for _ in range(5)]
            steps["verify"].append(await timed(verifier.verify(box, tests)))
            steps["close"].append(await timed(box.close()))
            await asyncio.sleep(SETTLE)
            begun = time.perf_counter()
            cold = await start(pool.layout, pool.cgroups)
            steps["cold"].append((time.perf_counter() - begun) * 1000)
            await cold.close()
    names = {
        "cold": "start a sandbox without the pool",
        "open": "open from the warm pool, 3 files",
        "run": "run one command",
        "verify": "end the attempt and verify it in a fresh one",
        "close": "close",
    }
    return [row(name, steps[key]) for key, name in names.items()]


async def rollout(pool: BubblewrapPool, verifier: Verifier, files: Path, tests: TaskSpec) -> float:
    """Milliseconds of a whole rollout: open, five commands, verify, close."""
    begun = time.perf_counter()
    box = await pool.open(Place(files))
    for _ in range(5):
        await box.run("echo 42 > answer.txt", 60)
    result = await verifier.verify(box, tests)
    await box.close()
    assert result.reward == 1.0, result
    return (time.perf_counter() - begun) * 1000


async def all_at_once(count: int, files: Path, tests: TaskSpec) -> list[str]:
    """Many whole rollouts at the same time; the pools are smaller than their number."""
    async with BubblewrapPool(8) as pool, bubblewrap_verifier(8) as verifier:
        await asyncio.sleep(1)
        begun = time.perf_counter()
        taken = await asyncio.gather(*(rollout(pool, verifier, files, tests) for _ in range(count)))
        each = (time.perf_counter() - begun) * 1000 / count
    return [
        row(f"{count} whole rollouts at once, latency of one", taken),
        f"{'  the same, time per rollout':<44}{each:>9.2f}",
    ]


async def starts(image: Path) -> list[str]:
    """The start of an attempt by kind, one of each in turn, so that all meet the same load."""
    place = Place(dockerfile=image, storage_mb=128, memory_mb=256)
    found: dict[str, list[float]] = {"bubblewrap": [], "overlay": [], "podman": []}
    plain = BubblewrapPool(1)
    async with OverlayPool() as overlay, ContainerPool() as podman:
        pools: dict[str, Callable[[], Awaitable[ImageSandbox | BubblewrapSandbox]]] = {
            "bubblewrap": lambda: start(plain.layout, plain.cgroups),
            "overlay": lambda: overlay.open(place),
            "podman": lambda: podman.open(place),
        }
        for open_one in pools.values():
            await (await open_one()).close()
        for _ in range(ROUNDS // 2):
            for name, open_one in pools.items():
                await asyncio.sleep(SETTLE)
                begun = time.perf_counter()
                box = await open_one()
                found[name].append((time.perf_counter() - begun) * 1000)
                await box.close()
    ratio = statistics.median(found["overlay"]) / statistics.median(found["bubblewrap"])
    rows = [row(f"start of an attempt, {name}", taken) for name, taken in found.items()]
    return [*rows, f"{'  overlay over bubblewrap':<44}{ratio:>9.2f}"]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files, tests = Path(folder, "files"), Path(folder, "tests")
        files.mkdir()
        tests.mkdir()
        for name in ("spec.md", "data.csv", "notes.txt"):
            (files / name).write_text("line\n" * 50)
        (tests / "test.sh").write_text(TEST)
        print(f"{'milliseconds':<44}{'median':>9}{'p95':>9}")
        task = TaskSpec(Task("t", ""), tests, VerifierSpec(tests))
        if sys.argv[1:]:
            Path(folder, "Dockerfile").write_text(f"FROM {sys.argv[1]}\n")
            lines = await starts(Path(folder, "Dockerfile"))
        else:
            lines = [*await one_at_a_time(files, task), *await all_at_once(64, files, task)]
        for line in lines:
            print(line)


if __name__ == "__main__":
    asyncio.run(main())
