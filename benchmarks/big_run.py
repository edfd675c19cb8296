"""Writes a run of any size through the real store: real sampler, pool updates and credit over invented rollouts.

python -m benchmarks.big_run FOLDER --iterations 1000 --tasks 32 --group 8
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy as np
import tomli_w

from arise.analyst.catalogue import Wording, wordings
from arise.coevolution import Update
from arise.config import Config, SeparateCredit, TrainConfig
from arise.llm.judge.meter import Meter
from arise.method.credit import group_advantages
from arise.method.evidence import records_of
from arise.method.lifecycle import evolve, fates, room
from arise.method.sampler import CapabilitySampler
from arise.run.calls import Recorded, Store, Usage
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.types import (
    Diagnostic,
    DiagnosticItem,
    DiagnosticKind,
    Draw,
    Fate,
    Group,
    Judgment,
    Observation,
    Pair,
    Pool,
    Proposal,
    Rejection,
    Rewrite,
    Rollout,
    ShownSkill,
    StopReason,
    Tally,
    Task,
    Tokens,
    ToolCall,
    Trajectory,
    Turn,
    Verdict,
)

TYPES = (
    "artifact-diagnosis-and-repair",
    "evidence-conformance",
    "unit-harmonization",
    "table-transformation",
    "service-configuration",
    "plan-synthesis",
    "log-analysis",
    "report-writing",
)
NOTHING = Diagnostic(True)
FOUND = Diagnostic(
    False,
    "no rubric asks for a second look",
    (
        DiagnosticItem(
            DiagnosticKind.FAILURE_GAP, "result_verification", "When a result was written, ...", ("no look",)
        ),
    ),
)


@dataclass
class Invention:
    """A policy that gets better at a rubric the longer it is judged by it, and faster while its skill is shown."""

    config: Config
    seed: int = 0
    corpus: int = 200
    fault_rate: float = 0.002
    pool: Pool = field(default_factory=Pool)
    mastery: dict[str, float] = field(default_factory=dict)
    window: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.tasks = {f"{TYPES[n % len(TYPES)]}-{n:04d}": self._task(n) for n in range(self.corpus)}
        self.sampler = CapabilitySampler(list(self.tasks.values()), np.random.default_rng([self.seed, 1]))
        self.ideas: Iterator[Wording] = cycle(wordings().values())

    def _task(self, n: int) -> Task:
        types = dict.fromkeys((TYPES[n % len(TYPES)], TYPES[int(self.random.integers(len(TYPES)))]))
        return Task(
            f"{TYPES[n % len(TYPES)]}-{n:04d}", f"Do the work number {n}.", tuple(types), ("data", "ops")[n % 2]
        )

    def iteration(self, k: int) -> IterationRecord:
        """Draw, invent, credit, observe, evolve."""
        train, limits, before = self.config.train, self.config.pool, self.pool
        draws = self.sampler.draw(train.tasks_per_iteration, k)
        groups = [self._group(k, draw) for draw in draws]
        rubric_ids = [rubric.id for rubric in before.rubrics]
        advantages = [group_advantages(group, rubric_ids, SeparateCredit()) for group in groups]
        self.sampler.observe(groups, before, k + 1)
        self._learn(groups)
        update = self._update(k + 1) if (k + 1) % limits.update_every == 0 else None
        if update:
            self.pool = update.evolution.pool
            self.sampler.keep_only(self.pool)
        state = {"iteration": k + 1, "sampler": self.sampler.to_dict()}
        metrics = self._metrics(groups)
        return IterationRecord(
            k, draws, groups, advantages, records_of(k, groups), before, update, metrics, state, None
        )

    def _group(self, k: int, draw: Draw) -> Group:
        task, size = self.tasks[draw.task_id], self.config.train.group_size
        rollouts = tuple(self._rollout(task, f"k{k}/{task.id}/{j}") for j in range(size))
        return Group(task, rollouts, size)

    def _rollout(self, task: Task, key: str) -> Rollout:
        if self.random.random() < self.fault_rate:
            return Rollout(Trajectory(key, task.id, (), StopReason.FAULT), None, None, fault="sandbox: lost")
        verdicts, absent, passed = {}, {}, []
        shown = tuple(ShownSkill(p.rubric.id, p.skill.revision) for p in self.pool.pairs if p.skill.active)
        guided = {skill.rubric_id for skill in shown}
        for rubric in self.pool.rubrics:
            chance, draw = self.random.random(), self.random.random()
            if draw < 0.005:
                absent[rubric.id] = "format"
            elif draw < 0.3:
                verdicts[rubric.id] = Verdict.NOT_APPLICABLE
            else:
                passed.append(chance < min(1.0, self.mastery[rubric.id] + 0.15 * (rubric.id in guided)))
                verdicts[rubric.id] = Verdict.PASS if passed[-1] else Verdict.FAIL
        success = bool(self.random.random() < 0.05 + 0.75 * (sum(passed) / len(passed) if passed else 0.1))
        diagnostic = FOUND if self.random.random() < 0.2 else NOTHING
        stop = StopReason.FINISHED if self.random.random() < 0.9 else StopReason.TURN_LIMIT
        trajectory = Trajectory(key, task.id, self._turns(), stop, "You work in a shell.", (self._row(),), shown)
        judgment = Judgment(self.pool.version, "invented", verdicts, absent, diagnostic)
        return Rollout(trajectory, float(success), success, judgment)

    def _turns(self) -> tuple[Turn, ...]:
        commands = ["cat task.md", "ls data", "python solve.py", "cat result.json", "submit"]
        some = commands[: int(self.random.integers(2, len(commands)))] + commands[-1:]
        return tuple(
            Turn(f"$ {text}", (ToolCall("bash", {"command": text}),), (Observation(f"output of {text}"),))
            for text in some
        )

    def _row(self) -> Tokens:
        generated = np.arange(40) % 8 >= 5
        return Tokens(
            np.arange(40), generated, np.where(generated, -0.5, 0.0), np.where(generated, 1, -1).astype(np.int64)
        )

    def _learn(self, groups: list[Group]) -> None:
        for rollout in (rollout for group in groups for rollout in group.rollouts):
            for rubric_id, verdict in rollout.judgment.verdicts.items() if rollout.judgment else ():
                if verdict is not Verdict.NOT_APPLICABLE:
                    self.window.setdefault(rubric_id, []).append(verdict is Verdict.PASS)
        for pair in self.pool.pairs:
            faster = 2.5 if pair.skill.active else 1.0
            self.mastery[pair.rubric.id] += faster * float(self.random.uniform(0.0, 0.025))

    def _update(self, iteration: int) -> Update:
        tallies = {
            rubric.id: Tally(sum(self.window.get(rubric.id, ())), len(self.window.get(rubric.id, ())))
            for rubric in self.pool.rubrics
        }
        limits = self.config.pool
        decided = fates(self.pool, tallies, limits)
        rewrites = {
            pair.rubric.id: self._rewrite(pair) for pair in self.pool.pairs if decided[pair.rubric.id] is Fate.REFINE
        }
        wanted = min(room(self.pool, decided, limits), max(0, 16 - len(self.pool)), 3)
        proposals = tuple(self._proposal(iteration) for _ in range(wanted))
        evolution = evolve(
            self.pool, tallies, iteration=iteration, rewrites=rewrites, proposals=proposals, limits=limits
        )
        for rubric in evolution.pool.rubrics:
            self.mastery.setdefault(rubric.id, float(self.random.uniform(0.1, 0.5)))
        self.window = {}
        return Update(evolution, proposals, (Rejection("The agent works well.", "says nothing that can be seen"),))

    def _rewrite(self, pair: Pair) -> Rewrite:
        return Rewrite(f"{pair.skill.text} Look once more before you finish.")

    def _proposal(self, iteration: int) -> Proposal:
        idea = next(self.ideas)
        refs = (f"e{iteration - 1:04d}-00-00",), (f"e{iteration - 1:04d}-00-01",)
        return Proposal(
            idea.criterion, idea.pattern.issue_tag, idea.pattern.capability, idea.applies, idea.rule, idea.skill, *refs
        )

    def _metrics(self, groups: list[Group]) -> dict[str, float]:
        complete = [group for group in groups if group.complete]
        wins = [sum(bool(r.success) for r in group.rollouts) for group in complete]
        size = self.config.train.group_size
        verdicts = [v for g in groups for r in g.rollouts if r.judgment for v in r.judgment.verdicts.values()]
        applicable = [v is Verdict.PASS for v in verdicts if v is not Verdict.NOT_APPLICABLE]
        return {
            "pass_rate": sum(wins) / max(1, size * len(complete)),
            "rubric_reward": sum(applicable) / max(1, len(applicable)),
            "all_fail": sum(win == 0 for win in wins),
            "all_pass": sum(win == size for win in wins),
            "mixed": sum(0 < win < size for win in wins),
            "incomplete": len(groups) - len(complete),
            "pool": len(self.pool),
            "skills_shown": sum(pair.skill.active for pair in self.pool.pairs),
            "coverage": self.sampler.coverage.coverage(),
            "turns": 4.0,
            "loss": float(self.random.normal(0, 0.01)),
            "grad_norm": float(self.random.uniform(0.2, 1.2)),
            "kept_share": 0.98,
            "generated_tokens": 15.0 * size * len(groups),
            "skipped": 0.0,
        }


def held_out(label: str, k: int, rate: float, random: np.random.Generator) -> list[tuple[object, ...]]:
    """Rows of an invented evaluation."""
    rows: list[tuple[object, ...]] = []
    for n in range(30):
        for m in range(3):
            success = int(random.random() < rate)
            head = (label, f"held-out-{n}", m, k, ("data", "ops")[n % 2], TYPES[n % len(TYPES)])
            rows.append((*head, success, float(success), "finished", "", 0, "{}"))
    return rows


class Bill:
    """What the iterations of an invented run took, and what its judge cost."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random, self._meter = random, Meter()
        self._sums: dict[str, float] = defaultdict(float)

    def vitals(self, calls: int) -> dict[str, float]:
        """The vitals of an iteration with so many calls."""
        for seconds in self._random.lognormal(0.4, 0.5, calls):
            self._meter.take("judge.reply", {"cached": bool(self._random.random() < 0.05), "seconds": float(seconds)})
        for name, value in (("calls", 1), ("prompt_tokens", 9000), ("cached_tokens", 6000), ("usd", 0.001)):
            self._sums[f"spent.judge.{name}"] += value * calls
        parts = {"rollouts": 20.0, "update": 6.0, "judge": 1.5, "store": 0.2}
        seconds = {f"seconds.{part}": float(mean * self._random.uniform(0.8, 1.2)) for part, mean in parts.items()}
        return {**self._meter.lap(), **self._sums, **seconds, "peak_mib": 800.0}


def record_calls(path: Path, calls: int) -> None:
    """A record of paid calls of the size that a long run leaves."""
    usage = Usage(prompt_tokens=9000, cached_tokens=6000, completion_tokens=400)
    reply = Recorded(text="{}", finish="stop", model="judge-1", fingerprint="", template_hash="", usage=usage)
    with closing(Store(path)) as store:
        for n in range(calls):
            store.put(f"{n:064x}", reply, "judge", 1_000_000, keep=False)


def write_run(folder: Path, iterations: int, tasks: int, group: int, seed: int = 0, tell: int = 0) -> None:
    """A whole run in `folder`; `tell` prints a line every so many iterations."""
    config = Config(train=TrainConfig(iterations=iterations, tasks_per_iteration=tasks, group_size=group, seed=seed))
    invention, random, began = Invention(config, seed), np.random.default_rng([seed, 2]), time.perf_counter()
    store, bill = RunStore.open(folder), Bill(random)
    try:
        (folder / "config.toml").write_text(tomli_w.dumps(config.model_dump()))
        store.save_attempts(held_out("before", 0, 0.15, random))
        for k in range(iterations):
            store.commit(invention.iteration(k))
            store.save_vitals(k, bill.vitals(tasks * group))
            if tell and (k + 1) % tell == 0:
                print(f"{k + 1}/{iterations} iterations, {time.perf_counter() - began:.0f} s", flush=True)
        store.save_attempts(held_out("after", iterations, 0.55, random))
        record_calls(folder / "calls.db", iterations * tasks * group)
    finally:
        store.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, value in (("iterations", 1000), ("tasks", 32), ("group", 8), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    write_run(given.folder, given.iterations, given.tasks, given.group, given.seed, tell=50)


if __name__ == "__main__":
    main()
