"""What ARISE itself costs per iteration at the paper's size: draws, credit, ledger, pool, digests and the real store.

    python -m benchmarks.driver                      32 x 8 rollouts of 40,000 tokens, 64 rubrics, 5 iterations

Rollouts are invented, everything else is the code of a run. Agents, judge and engine run elsewhere at that size: only
this process counts. Targets: under 2 % of a 16-minute iteration and under 8 GiB.
"""

import argparse
import platform
import resource
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from arise.coevolution import Update
from arise.config import Config, TrainConfig
from arise.method.lifecycle import evolve
from arise.run.store import RunStore
from arise.text.numbers import percent, size
from arise.types import Observation, Rollout, Task, Tokens, ToolCall, Turn
from benchmarks.big_run import Invention

ITERATION_SECONDS = 16 * 60
SECONDS_TARGET, MEMORY_TARGET = 0.02 * ITERATION_SECONDS, 8 * 2**30
CHARS_PER_TOKEN = 4


@dataclass
class LongRollouts(Invention):
    """Rollouts of the paper's length, judged by a full pool from the first iteration on."""

    tokens: int = 40_000
    turns: int = 40
    inventing: float = 0.0
    """Processor seconds that went into inventing rollouts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        proposals = tuple(self._proposal(1) for _ in range(self.config.pool.max_pairs))
        limits = self.config.pool.model_copy(update={"max_new_pairs": len(proposals)})
        self.pool = evolve(self.pool, {}, iteration=1, rewrites={}, proposals=proposals, limits=limits).pool
        self.mastery = {rubric.id: 0.5 for rubric in self.pool.rubrics}
        self.sampler.keep_only(self.pool)

    def _update(self, iteration: int) -> Update:
        self.mastery = dict.fromkeys(self.mastery, 0.5)
        return super()._update(iteration)

    def _rollout(self, task: Task, key: str) -> Rollout:
        began = time.process_time()
        rollout = super()._rollout(task, key)
        self.inventing += time.process_time() - began
        return rollout

    def _turns(self) -> tuple[Turn, ...]:
        length = self.tokens * CHARS_PER_TOKEN // self.turns
        return tuple(
            Turn(
                self._text(length // 3),
                (ToolCall("bash", {"command": f"python step{n}.py"}),),
                (Observation(self._text(2 * length // 3)),),
            )
            for n in range(self.turns)
        )

    def _row(self) -> Tokens:
        generated = np.arange(self.tokens) % 10 < 3
        return Tokens(
            self.random.integers(0, 150_000, self.tokens),
            generated,
            np.where(generated, -self.random.exponential(0.5, self.tokens), 0.0),
            np.where(generated, 3, -1).astype(np.int64),
        )

    @cached_property
    def _words(self) -> list[str]:
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz_/.0123456789"))
        return ["".join(self.random.choice(letters, self.random.integers(2, 12))) for _ in range(20_000)]

    def _text(self, chars: int) -> str:
        """Text whose words follow Zipf's law, so that it compresses about as real output does."""
        ranks = np.minimum(self.random.zipf(1.3, chars // 7), len(self._words)) - 1
        return " ".join(self._words[rank] for rank in ranks)


def main() -> None:
    """Print seconds, memory and disk per iteration beside the targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("iterations", 5), ("tasks", 32), ("group", 8), ("tokens", 40_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    train = TrainConfig(iterations=given.iterations, tasks_per_iteration=given.tasks, group_size=given.group)
    config = Config(train=train)
    run, spent = LongRollouts(config, corpus=1728, tokens=given.tokens), []
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore.open(Path(folder) / "run")
        try:
            for k in range(given.iterations):
                began, run.inventing = time.process_time(), 0.0
                store.commit(run.iteration(k))
                spent.append(time.process_time() - began - run.inventing)
        finally:
            store.close()
        disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / given.iterations
    report(given.tasks * given.group, given.tokens, spent, disk)


def report(rollouts: int, tokens: int, spent: list[float], disk: float) -> None:
    """Print the table."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = float(np.median(spent))
    print(f"{platform.processor() or platform.machine()}, {rollouts} rollouts of {tokens:,} tokens, 64 rubrics")
    share = percent(seconds / ITERATION_SECONDS)
    print(f"processor time per iteration  {seconds:6.1f} s   target {SECONDS_TARGET:.1f} s   {share} of 16 minutes")
    print(f"peak memory                   {size(peak):>8}   target {size(MEMORY_TARGET)}")
    print(f"disk per iteration            {size(disk):>8}   {disk / (rollouts * tokens):.1f} bytes per token")
    print("met" if seconds <= SECONDS_TARGET and peak <= MEMORY_TARGET else "MISSED")


if __name__ == "__main__":
    main()
