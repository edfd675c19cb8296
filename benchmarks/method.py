"""Speed of the method library, printed as one table: `python -m benchmarks.method`.

Repetitions of things that are compared are interleaved. The best repetition is held against the target, the median
stands beside it: on a busy machine they drift apart, on a quiet one they agree.
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import ParamSpec, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from arise.method.advantage import combined_advantages
from arise.method.loss import policy_loss
from arise.method.sampler import CapabilitySampler
from arise.types import (
    Capability,
    Group,
    Judgment,
    Pair,
    Pool,
    Rollout,
    Rubric,
    Skill,
    StopReason,
    Task,
    Trajectory,
    Verdict,
)
from benchmarks.plain_sampler import PlainSampler

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
BATCH, GROUP_SIZE, RUBRICS, TYPES, CORPUS, MILLION = 32, 8, 64, 67, 1_728, 1_000_000
CAPABILITIES = tuple(Capability)
VERDICTS = tuple(Verdict)
POOL = Pool(
    tuple(Pair(Rubric(f"r{i:03d}", "", "", CAPABILITIES[i % 5], "", ""), Skill("")) for i in range(1, RUBRICS + 1)),
    version=1,
    born=RUBRICS,
)


@dataclass(frozen=True)
class Line:
    """One line of the table: best and median of a repeated measurement; `target` is an upper bound for the best."""

    what: str
    best: float
    median: float
    unit: str
    target: float | None = None
    note: str = ""

    def __str__(self) -> str:
        verdict = "" if self.target is None else "ok" if self.best <= self.target else "MISSED"
        bound = "" if self.target is None else f"<= {self.target:g} {self.unit}"
        numbers = f"{self.best:>9.3f} {self.median:>9.3f} {self.unit:<4}"
        return f"{self.what:<56} {numbers} {bound:>11} {verdict:<7} {self.note}".rstrip()


def corpus(size: int) -> list[Task]:
    """Tasks with one to three tags each, 2.0 on average."""
    random = np.random.default_rng(0)
    tags = [
        tuple(f"type-{d:02d}" for d in random.choice(TYPES, size=int(random.integers(1, 4)), replace=False))
        for _ in range(4096)
    ]
    return [Task(f"task-{n:07d}", "", tags[n % len(tags)]) for n in range(size)]


def judged(random: np.random.Generator, task: Task) -> Group:
    """A complete group with a verdict of every rubric on every rollout."""
    rollouts = []
    for j, row in enumerate(random.integers(0, 3, (GROUP_SIZE, RUBRICS)).tolist()):
        verdicts = {rubric.id: VERDICTS[code] for rubric, code in zip(POOL.rubrics, row, strict=True)}
        trajectory = Trajectory(f"{task.id}-{j}", task.id, (), StopReason.FINISHED)
        rollouts.append(Rollout(trajectory, 0.0, False, Judgment(1, "benchmark", verdicts)))
    return Group(task, tuple(rollouts), GROUP_SIZE)


def timed(
    action: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> tuple[Result, float]:
    """What an action gives back, and the seconds it took."""
    begin = perf_counter()
    result = action(*args, **kwargs)
    return result, perf_counter() - begin


def interleaved(actions: Sequence[Callable[[], object]], repetitions: int) -> list[list[float]]:
    """The seconds of each action's repetitions, taking turns."""
    turns = [[timed(action)[1] for action in actions] for _ in range(repetitions)]
    return [list(seconds) for seconds in zip(*turns, strict=True)]


def spread(seconds: Sequence[float], scale: float = 1.0) -> tuple[float, float]:
    """Best and median."""
    return scale * min(seconds), scale * median(seconds)


def sampler_lines(batches: int = 40) -> list[Line]:
    """The paper's corpus: draw and bookkeeping, beside a plain implementation in the same process."""
    tasks = corpus(CORPUS)
    task_of = {task.id: task for task in tasks}
    random = np.random.default_rng(1)
    sampler = CapabilitySampler(tasks, np.random.default_rng(2))
    sampler.keep_only(POOL)
    plain = PlainSampler(tasks, np.random.default_rng(3), POOL)
    rows: list[list[float]] = []
    for version in range(batches):
        drawn, draw_seconds = timed(sampler.draw, BATCH, version)
        groups = [judged(random, task_of[draw.task_id]) for draw in drawn]
        _, observe_seconds = timed(sampler.observe, groups, POOL, version)
        _, plain_draw = timed(plain.draw, BATCH, version)
        _, plain_observe = timed(plain.observe, groups, version)
        rows.append([draw_seconds, observe_seconds, draw_seconds + observe_seconds, plain_draw + plain_observe])
    draw, observe, both, slow = (spread(column, 1e3) for column in zip(*rows[batches // 4 :], strict=True))
    tags = sum(len(task.task_types) for task in tasks) / CORPUS
    name = f"batch of {BATCH}, {CORPUS:,} tasks x {TYPES} types x {RUBRICS} rubrics"
    note = f"{tags:.2f} tags a task; plain {slow[1]:.0f} ms, {slow[1] / both[1]:.0f}x (medians)"
    return [
        Line(name, *both, "ms", 10, note),
        Line("  draw", *draw, "ms"),
        Line("  bookkeeping of 32 finished groups", *observe, "ms"),
    ]


def million() -> dict[str, list[float]]:
    """Run in a process of its own, so that its peak memory is its own."""
    tasks = corpus(MILLION)
    random = np.random.default_rng(1)
    sampler = CapabilitySampler(tasks, np.random.default_rng(2))
    sampler.keep_only(POOL)
    seconds = []
    for version in range(25):
        drawn, draw_seconds = timed(sampler.draw, BATCH, version)
        groups = [judged(random, tasks[sampler.coverage.index(draw.task_id)]) for draw in drawn]
        _, observe_seconds = timed(sampler.observe, groups, POOL, version)
        seconds.append(draw_seconds + observe_seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": seconds, "peak": [peak]}


def million_lines() -> list[Line]:
    done = subprocess.run([sys.executable, __file__, "million"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    note = f"slowest {max(found['seconds']):.3f} s"
    return [
        Line(f"batch of {BATCH}, {MILLION:,} tasks", *spread(found["seconds"]), "s", 0.3, note),
        Line("  peak memory, corpus included", *spread(found["peak"]), "GiB", 1.0),
    ]


def advantage_lines() -> list[Line]:
    random = np.random.default_rng(0)
    rewards = random.integers(0, 2, (BATCH, GROUP_SIZE)).astype(float)
    verdicts = random.choice([0.0, 1.0, np.nan], (BATCH, RUBRICS, GROUP_SIZE))

    def every_group() -> None:
        for reward_J, verdict_IJ in zip(rewards, verdicts, strict=True):
            combined_advantages(reward_J, verdict_IJ)

    (seconds,) = interleaved([every_group], 200)
    return [Line(f"combined_advantages, {BATCH} x {GROUP_SIZE} x {RUBRICS}", *spread(seconds, 1e3), "ms", 5)]


def loss_line(dtype: type[np.float64] | type[np.float32], tokens: int = 1_000_000) -> Line:
    """Against the bare arithmetic over the same arrays, with and without the subtraction."""
    random = np.random.default_rng(0)
    behaviour_U = (-random.exponential(1.0, tokens)).astype(dtype)
    logprob_U = behaviour_U + random.normal(0.0, 0.1, tokens).astype(dtype)
    advantage_U = random.normal(0.0, 1.0, tokens).astype(dtype)
    generated_U = random.random(tokens) < 0.5
    actions: list[Callable[[], object]] = [
        lambda: policy_loss(logprob_U, behaviour_U, advantage_U, generated_U),
        lambda: np.exp(logprob_U - behaviour_U) * advantage_U,
        lambda: np.exp(logprob_U) * advantage_U,
    ]
    loss, bare, barest = interleaved(actions, 200)
    best, usual = min(loss) / min(bare), median(loss) / median(bare)
    note = f"{1e3 * min(loss):.1f} ms; exp(a - b) * c {1e3 * min(bare):.1f} ms; exp(a) * c {1e3 * min(barest):.1f} ms"
    return Line(f"policy_loss, {tokens:,} tokens, {np.dtype(dtype).name}", best, usual, "x", 2, note)


def loss_lines() -> list[Line]:
    return [loss_line(np.float64), loss_line(np.float32)]


def start_lines() -> list[Line]:
    def run(code: str, *arguments: str) -> Callable[[], object]:
        command = [sys.executable, "-c", code, *arguments]
        return lambda: subprocess.run(command, capture_output=True, check=True)

    nothing, package, helped = interleaved(
        [run("pass"), run("import arise"), run("from arise.cli.main import main; main()", "--help")], 12
    )
    note = f"bare interpreter {min(nothing):.3f} s"
    return [
        Line("import arise, whole process", *spread(package), "s", 0.15, note),
        Line("arise --help, whole process", *spread(helped), "s", 0.8, note),
    ]


def main() -> None:
    """Print the table, or do one child's part of it."""
    if sys.argv[1:] == ["million"]:
        print(json.dumps(million()))
        return
    print(f"{'':<56} {'best':>9} {'median':>9}")
    for part in (sampler_lines, million_lines, advantage_lines, loss_lines, start_lines):
        for line in part():
            print(line, flush=True)


if __name__ == "__main__":
    main()
