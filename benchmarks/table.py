"""The speed of ARISE in one table, with the processor, the load and the versions it was measured with.

    python -m benchmarks.table              every row that can run here
    python -m benchmarks.table sandbox ...  some: sampling smollm2 prompts trl sandbox growth memory train

Rows are ratios of contenders that alternate in one process, medians of the rounds. Run it on an idle machine.
A row that cannot run here says which command makes it run: no step installs TRL or pulls SmolLM2. `train` runs
`make train` with its run in a temporary folder, with the warm start made anew.
"""

import asyncio
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import transformers

from arise.engines.local.kernel import kernel
from arise.sandbox.launch import start
from arise.sandbox.native_server import native_server
from arise.sandbox.pool import BubblewrapPool
from arise.types.sandbox import LOGS, TESTS
from benchmarks import engine

Row = tuple[str, str, str]
STARTS = 30
ROOT = Path(__file__).resolve().parents[1]


def sampling() -> Iterator[Row]:
    found = engine.sampling()
    what = "sampling, 64 four-turn conversations, small model, against `generate`"
    yield f"{what} with its cache kept", f"{found['generate, cache kept']:.2f}x", ">= 2x"
    yield f"{what} re-reading", f"{found['transformers.generate']:.2f}x", ">= 4x"


def smollm2() -> Iterator[Row]:
    what = "SmolLM2-135M, 8 four-turn conversations, shared prompt, against"
    found = engine.smollm2()
    if not found:
        yield f"{what} generate", f"not run: {engine.SMOLLM2_MISSING}", ">= 2x"
    for other, ratio in found.items():
        if other != "engine":
            yield f"{what} {other}", f"{ratio:.2f}x", ">= 2x"


def prompts() -> Iterator[Row]:
    yield "update, attention over a group's prompt once, against whole rows", f"{engine.prompts():.2f}x", "> 1x"


def trl() -> Iterator[Row]:
    asked = {1: ">= 2x", 4: ">= 3x"}
    found = engine.trl()
    for turns in asked:
        shown = f"{found[turns]:.2f}x" if turns in found else f"not run: {engine.TRL_MISSING}"
        yield f"end to end against TRL's GRPOTrainer, {turns} turn(s)", shown, asked[turns]


def growth() -> Iterator[Row]:
    found = engine.growth()
    shown = " -> ".join(f"{cost:.0f}" for cost in found.values())
    yield f"iteration of {min(found)} to {max(found)} trajectories, us a token", shown, "linear or better"


def memory() -> Iterator[Row]:
    found = engine.memory()
    shown = ", ".join(f"{rows}: {mib:.0f}" for rows, mib in sorted(found.items()))
    yield "peak memory of an update by trajectories, MiB", shown, "flat"


def _processor_seconds() -> float:
    """Of this process and of all it waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


def sandbox() -> Iterator[Row]:
    """Start and end sandboxes of both kinds, of which an attempt uses one each."""
    guarded = BubblewrapPool(1, None, (LOGS,), shown=(TESTS,), guard=(LOGS, TESTS))

    async def one(pool: BubblewrapPool) -> float:
        begun = _processor_seconds()
        await (await start(pool.layout, pool.cgroups)).close()
        return (_processor_seconds() - begun) * 1000

    async def both() -> dict[str, list[float]]:
        pools = {"of an agent": BubblewrapPool(1), "of a verifier": guarded}
        taken: dict[str, list[float]] = {name: [] for name in pools}
        for _ in range(STARTS + 1):
            for name, pool in pools.items():
                taken[name].append(await one(pool))
        return taken

    for name, milliseconds in asyncio.run(both()).items():
        yield f"processor time per sandbox {name}", f"{statistics.median(milliseconds[1:]):.1f} ms", "<= 12 ms"


def train() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["make", "train", f"ARGS=--run-dir {folder}/run"]
        begun = time.perf_counter()
        environment = {**os.environ, "ARISE_CACHE": f"{folder}/cache"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
        minutes = (time.perf_counter() - begun) / 60
    yield "`make train`, set-up aside, warm start included", f"{minutes:.1f} min", "<= 4 min"


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "sampling": sampling,
    "smollm2": smollm2,
    "prompts": prompts,
    "trl": trl,
    "sandbox": sandbox,
    "growth": growth,
    "memory": memory,
    "train": train,
}


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "?")
    wide = next((word for word in ("avx512f", "avx2") if any(word in line for line in lines)), "no AVX2")
    return f"{name} ({wide}), {os.cpu_count()} cores, Linux {platform.release()}"


def main() -> None:
    torch.set_num_threads(1)  # this thread only waits
    before = os.getloadavg()[0]
    rows = [row for part in sys.argv[1:] or PARTS for row in PARTS[part]()]
    native = f"native engine {'yes' if kernel() else 'no'}, native sandbox server {'yes' if native_server() else 'no'}"
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    print(f"\n{machine()}\nload {before:.1f} before, {os.getloadavg()[0]:.1f} after; {versions}; {native}\n")
    widths = [max(len(row[column]) for row in (*rows, ("what", "found", "asked"))) for column in range(3)]
    for row in (("what", "found", "asked"), tuple("-" * width for width in widths), *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()
