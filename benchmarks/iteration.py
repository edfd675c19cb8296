"""Where an iteration's time goes and how much memory a run takes: a short real run, read from its own store.

    python -m benchmarks.iteration                           configs/embedded.toml, 8 iterations
    python -m benchmarks.iteration configs/x.toml --set train.iterations=20

Every moment of an iteration belongs to one line of the second table: the store while it commits, else the policy while
the engine computes, else sandbox and verifier while a command or a verification is under way, else the loop itself.
"""

import asyncio
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import psutil

from arise.compose.build import open_run
from arise.config.file import load_config
from arise.engines.local.scheduler import Scheduler
from arise.observe.terminal import Display
from arise.rollouts.verifier import Verifier
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.pool import BubblewrapPool
from arise.train import train

ROOT = Path(__file__).resolve().parents[1]
LINES = ("store", "policy", "sandbox and verifier", "loop")
TARGETS = {"store": 0.02, "sandbox and verifier": 0.20, "loop": 0.05}
MEMORY_TARGET = 3 * 1024
Moment = tuple[float, str, int]


class Timeline:
    """When what was under way; moments may come from several threads."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def mark(self, name: str, change: int) -> None:
        self.moments.append((time.perf_counter(), name, change))

    def around(self, name: str, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The coroutine function, with its time marked."""

        async def timed(*arguments: Any, **named: Any) -> Any:
            self.mark(name, 1)
            try:
                return await function(*arguments, **named)
            finally:
                self.mark(name, -1)

        return timed

    def seconds(self) -> dict[str, float]:
        """How long each line of the table lasted, between the first and the last iteration mark."""
        under_way: dict[str, int] = defaultdict(int)
        spent: dict[str, float] = defaultdict(float)
        before: float | None = None
        for now, name, change in sorted(self.moments):
            if before is not None and under_way["iteration"]:
                spent[next((line for line in LINES if under_way[line]), "loop")] += now - before
            under_way[name] += change
            before = now
        return spent


class Watch(Display):
    """The plain display, marking iterations and the store's part on the timeline."""

    def __init__(self, timeline: Timeline, iterations: int) -> None:
        super().__init__(print, iterations)
        self._timeline, self._now = timeline, ""

    def part(self, name: str) -> None:
        for line, parts in (("iteration", ("sampler",)), ("store", ("store",))):
            if name in parts and self._now not in parts:
                self._timeline.mark(line, 1)
        if self._now == "store" and name != "store":
            self._timeline.mark("store", -1)
            self._timeline.mark("iteration", -1)
        self._now = name
        super().part(name)


def observe(timeline: Timeline) -> None:
    """Mark what the engine's thread, the sandboxes and the verifier do."""
    plain = Scheduler.run

    async def run(self: Scheduler, work: Callable[[], Any]) -> Any:
        def timed() -> Any:
            timeline.mark("policy", 1)
            try:
                return work()
            finally:
                timeline.mark("policy", -1)

        return await plain(self, timed)

    Scheduler.run = run  # type: ignore[method-assign]
    for kind, name in ((BubblewrapSandbox, "run"), (BubblewrapPool, "open"), (Verifier, "verify")):
        setattr(kind, name, timeline.around("sandbox and verifier", getattr(kind, name)))


class Memory:
    """Peak memory of the processes below this one, sampled."""

    def __init__(self) -> None:
        self.children_mib, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.5):
            total = 0
            for child in me.children(recursive=True):
                try:
                    total += child.memory_info().rss
                except psutil.Error:
                    continue
            self.children_mib = max(self.children_mib, total / 2**20)


def report(folder: Path, timeline: Timeline, children_mib: float) -> None:
    """Both tables and the memory, against their targets."""
    with RunReader.open(folder) as run:
        rows = run.query(
            "SELECT substr(name, 9), SUM(value) FROM vitals WHERE name LIKE 'seconds.%' GROUP BY 1 ORDER BY 2 DESC"
        )
        ((peak,),) = run.query("SELECT MAX(value) FROM vitals WHERE name='peak_mib'")
        iterations = run.committed()
    total = sum(row[1] for row in rows)
    print(f"\n{iterations} iterations, {total / iterations:.2f} s each, load {os.getloadavg()[0]:.1f}")
    print(f"\n{'part (run store)':24}{'s an iteration':>15}{'share':>8}")
    for name, seconds in rows:
        print(f"{name:24}{seconds / iterations:15.3f}{seconds / total:8.1%}")
    spent = timeline.seconds()
    whole = sum(spent.values())
    print(f"\n{'what was under way':24}{'s an iteration':>15}{'share':>8}{'target':>9}")
    for line in LINES:
        share = spent[line] / whole
        target = TARGETS.get(line)
        verdict = "" if target is None else f"{target:9.0%}{'' if share <= target else '  MISSED'}"
        print(f"{line:24}{spent[line] / iterations:15.3f}{share:8.1%}{verdict}")
    memory = peak + children_mib
    missed = "" if memory <= MEMORY_TARGET else "  MISSED"
    parts = f"{peak:.0f} MiB the process, {children_mib:.0f} MiB sandboxes"
    print(f"\npeak memory: {parts}; target {MEMORY_TARGET} MiB{missed}")


async def run_once(folder: Path, paths: list[Path], overrides: list[str], timeline: Timeline) -> None:
    """The run, without its evaluations."""
    config = load_config(paths, ["train.iterations=8", *overrides])
    with closing(RunStore.open(folder)) as store:
        async with open_run(
            config, store.folder, lambda: nullcontext(store), Watch(timeline, config.train.iterations)
        ) as place:
            await train(place.run, place.state)


def main(arguments: list[str]) -> None:
    paths = [Path(word) for word in arguments if word.endswith(".toml")] or [ROOT / "configs/embedded.toml"]
    overrides = [word for word in arguments if "=" in word]
    timeline = Timeline()
    observe(timeline)
    with tempfile.TemporaryDirectory(prefix="arise-iteration-") as folder, Memory() as memory:
        asyncio.run(run_once(Path(folder), paths, overrides, timeline))
        report(Path(folder), timeline, memory.children_mib)


if __name__ == "__main__":
    main(sys.argv[1:])
