"""What a judge behind HTTP adds to an iteration: `python -m benchmarks.judge [--median 60] [--latency 1.5]`.

Two embedded runs in one process take turns, iteration by iteration: outcome-only, and judged and reflected by the
offline analyst behind a loopback server that delays every reply by the latency. Sampler, guidance and learning rate are
set so that both have the same rollouts, which is checked. Real rollouts of the small model take a second; each is held
back until a time drawn for it (log-normal, the given median in seconds, the same in both runs) is over, because agents
in containers take minutes; what the machine does besides is hidden in that time. Paper: 4.1 %.
"""

import argparse
import asyncio
import math
import os
import tempfile
import time
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

from arise.compose.build import RunContext, open_run
from arise.config import Config
from arise.observe.terminal import Display
from arise.rollouts.collect import Collector
from arise.run.store import RunStore
from arise.train import train
from arise.types import Rollout

SPREAD = 0.35
SHARED: dict[str, Any] = {
    "optimizer": {"learning_rate": 1e-12, "precision": "fp32"},
    "sampler": {"kind": "uniform"},
    "guidance": {"show_skills": False},
    "tasks": {"train_tasks": 40, "eval_tasks": 1},
    "model": {"hidden": 48, "demonstrations": 160, "epochs": 6},
    "agent": {"max_turns": 6},
}


class SlowCollector(Collector):
    """Real rollouts that end when their drawn time is over."""

    median = 0.0

    async def attempt(self, *arguments: Any) -> Rollout:
        began, key = time.monotonic(), str(arguments[-1])
        rollout = await super().attempt(*arguments)
        lot = (int.from_bytes(blake2b(key.encode(), digest_size=6).digest(), "big") + 0.5) / 2**48
        takes = self.median * math.exp(NormalDist(0.0, SPREAD).inv_cdf(lot))
        await asyncio.sleep(max(0.0, began + takes - time.monotonic()))
        return rollout


@dataclass
class Arm:
    """One of the two runs, driven an iteration at a time."""

    place: RunContext
    seconds: list[float] = field(default_factory=list)

    async def iteration(self) -> None:
        config = self.place.run.config
        until = config.train.model_copy(update={"iterations": self.place.state.iteration + 1})
        began = time.perf_counter()
        await train(replace(self.place.run, config=config.model_copy(update={"train": until})), self.place.state)
        self.seconds.append(time.perf_counter() - began)

    def rewards(self) -> list[tuple[Any, ...]]:
        """Every rollout as far as it can be compared: name, reward, turns, tokens."""
        return self.place.run.store.query("SELECT id, reward, turns, generated_tokens FROM rollouts ORDER BY id")


async def opened(stack: AsyncExitStack, folder: Path, judge: dict[str, Any], arguments: argparse.Namespace) -> Arm:
    train_section = {
        "iterations": arguments.iterations,
        "tasks_per_iteration": arguments.tasks,
        "group_size": arguments.group,
    }
    pool = {"pool": {"update_every": arguments.update_every}, "evidence": {"window": arguments.update_every}}
    config = Config.model_validate(SHARED | pool | {"train": train_section, "judge": judge})
    store = RunStore.open(folder)
    stack.callback(store.close)
    place = await stack.enter_async_context(
        open_run(config, store.folder, lambda: nullcontext(store), Display(print, arguments.iterations))
    )
    place.run.rollouts.__class__ = SlowCollector
    return Arm(place)


async def main(arguments: argparse.Namespace) -> None:
    SlowCollector.median = arguments.median
    print(f"load at the start: {', '.join(f'{value:.1f}' for value in os.getloadavg())}")
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as stack:
            plain = await opened(stack, Path(name) / "plain", {"kind": "none"}, arguments)
            judged = await opened(
                stack, Path(name) / "judged", {"kind": "fake", "latency": arguments.latency}, arguments
            )
            for number in range(arguments.iterations):
                for arm in (plain, judged) if number % 2 else (judged, plain):
                    await arm.iteration()
            report(plain, judged, arguments)


def report(plain: Arm, judged: Arm, arguments: argparse.Namespace) -> None:
    ratios = sorted(100 * (b / a - 1) for a, b in zip(plain.seconds, judged.seconds, strict=True))
    ((verdicts,),) = judged.place.run.store.query("SELECT COUNT(*) FROM verdicts WHERE verdict IS NOT NULL")
    events = (judged.place.run.store.folder / "calls.jsonl").read_text("utf-8").splitlines()
    total = 100 * (sum(judged.seconds) / sum(plain.seconds) - 1)
    print(f"load at the end: {', '.join(f'{value:.1f}' for value in os.getloadavg())}")
    print(f"rollouts      {arguments.tasks} x {arguments.group}, median {arguments.median:g} s, log-normal {SPREAD}")
    print(f"same rollouts {'yes' if plain.rewards() == judged.rewards() else 'NO'}")
    print(f"outcome only  median {median(plain.seconds):.2f} s an iteration")
    print(f"with a judge  median {median(judged.seconds):.2f} s, {len(events)} replies of {arguments.latency} s, "
          f"{verdicts} verdicts, {len(judged.place.state.pool)} rubrics at the end")  # fmt: skip
    print(f"overhead      {total:.2f} % over {len(ratios)} iterations; an iteration: median {median(ratios):.2f} %, "
          f"from {ratios[0]:.2f} to {ratios[-1]:.2f} %")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--median", type=float, default=60.0)
    parser.add_argument("--latency", type=float, default=1.5)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--update-every", type=int, default=5)
    asyncio.run(main(parser.parse_args()))
