"""Check from the run folders that a comparison was fair: initial weights, tasks, rollouts, no skills in evaluation."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from arise.report.comparison.document import counted
from arise.report.comparison.measures import RunMeasures, Study


@dataclass(frozen=True)
class Check:
    """One fairness check — `Check("the same initial weights", True, "5 seeds, 1 start each")`."""

    promise: str
    kept: bool
    found: str


def checks(study: Study) -> list[Check]:
    """Run all fairness checks."""
    runs = [run for of_method in study.values() for run in of_method]
    return [
        _same_start(runs),
        _same_for_all("the same number of threads and the same torch", runs, _threads),
        _same_tasks(runs),
        _same_rollouts(runs),
        _same_seeds(study),
        _no_skill(runs),
    ]


def _same_start(runs: list[RunMeasures]) -> Check:
    """Compare initial weights within each seed, because adapters are initialised from the run's seed."""
    starts = {(run.seed, run.facts.get("weights", "not noted")) for run in runs}
    seeds = {run.seed for run in runs}
    kept = len(starts) == len(seeds) and all(digest != "not noted" for _, digest in starts)
    different = len({digest for _, digest in starts})
    return Check(
        "the same initial weights for all methods",
        kept,
        f"{counted(len(seeds), 'seed')}, {counted(different, 'different start')}",
    )


def _threads(run: RunMeasures) -> str:
    return f"threads: {run.facts.get('threads', 'not noted')}, torch: {run.facts.get('torch', 'not noted')}"


def _same_for_all(promise: str, runs: list[RunMeasures], fact: Callable[[RunMeasures], str]) -> Check:
    found = {fact(run) for run in runs}
    return Check(promise, len(found) == 1, " or ".join(sorted(found)))


def _same_tasks(runs: list[RunMeasures]) -> Check:
    found = {tuple(sorted({attempt.task_id for attempt in run.labelled("after")})) for run in runs}
    counts = " or ".join(sorted({f"{len(tasks)} tasks" for tasks in found}))
    return Check("the same held-out tasks", len(found) == 1, counts)


def _same_rollouts(runs: list[RunMeasures]) -> Check:
    sizes: set[int] = set()
    for run in runs:
        by_iteration: dict[int, int] = defaultdict(int)
        for group in run.groups:
            by_iteration[group.k] += group.size
        sizes |= set(by_iteration.values())
    return Check("the same rollouts in every iteration", len(sizes) <= 1, " or ".join(map(str, sorted(sizes))))


def _same_seeds(study: Study) -> Check:
    found = {method: tuple(run.seed for run in runs) for method, runs in study.items()}
    missing = [method for method, seeds in found.items() if seeds != max(found.values(), key=len)]
    return Check(
        "the same seeds for all methods", not missing, ", ".join(missing) or str(len(next(iter(found.values()))))
    )


def _no_skill(runs: list[RunMeasures]) -> Check:
    leaked, prompts = sum(run.skill_bytes for run in runs), sum(len(run.attempts) for run in runs)
    return Check("no evolved skill at evaluation", leaked == 0, f"{leaked} evolved-skill bytes in {prompts} prompts")
