"""Measurements of a run folder that reports, figures and tables use."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from arise.errors import AriseError, Exit
from arise.evaluation.retention import curves, retired
from arise.report.comparison.plan import read_plan, run_folder
from arise.run.facts.behaviours import contrasts
from arise.run.facts.score import succeeded
from arise.run.labels import point_of
from arise.run.pool_rows import Event
from arise.run.reader import RunReader
from arise.run.rows import AttemptRow, CellDraws, GroupRow
from arise.types import Tally

STAGES = ("early", "middle", "late")
ADDING = ("born", "imported", "reopen")


@dataclass(frozen=True)
class Score:
    """Held-out attempts of one evaluation — `Score(12, 60, 1)`: successes, counted attempts, excluded faults."""

    won: int
    tried: int
    faults: int

    @property
    def rate(self) -> float:
        return 100.0 * self.won / self.tried if self.tried else 0.0


@dataclass(frozen=True)
class RunMeasures:
    """Measurements of one run; iterations count from 1."""

    method: str
    seed: int
    folder: Path
    config: Mapping[str, Any]
    facts: Mapping[str, str]
    metrics: Sequence[Mapping[str, float]]
    attempts: Sequence[AttemptRow]
    events: Sequence[Event]
    groups: Sequence[GroupRow]
    cells_by_stage: Sequence[Sequence[CellDraws]]
    verdicts: Mapping[int, tuple[int, int]]
    """k to (passes, applicable verdicts) of the training rollouts."""
    iteration_seconds: Sequence[float]
    """Seconds of each iteration, without evaluation."""
    contrasts: Mapping[int, tuple[Tally, Tally]]
    """k to verdicts on rubrics whose skill was shown then: of rollouts that saw it, and of the others."""
    criteria: Mapping[str, str]
    """Rubric id to its criterion; a rediscovered criterion has a new id and the same text."""
    retention: Sequence[Mapping[str, Any]]
    """Each retirement: its iteration, its pass rate, and later unguided rates until the rubric returned."""

    @property
    def planned(self) -> int:
        return int(self.config["train"]["iterations"])

    @property
    def finished(self) -> bool:
        return len(self.metrics) >= self.planned and bool(self.score("after").tried)

    @cached_property
    def _by_label(self) -> dict[str, list[AttemptRow]]:
        found: dict[str, list[AttemptRow]] = defaultdict(list)
        for attempt in self.attempts:
            found[attempt.label].append(attempt)
        return found

    def labelled(self, label: str) -> list[AttemptRow]:
        return self._by_label.get(label, [])

    def score(self, label: str) -> Score:
        rows = self.labelled(label)
        won, tried = succeeded(rows)
        return Score(won, tried, len(rows) - tried)

    def outcomes(self, label: str) -> dict[tuple[int, str, int], bool]:
        """Map (seed, task, attempt) to success, without attempts that infrastructure ended."""
        rows = self.labelled(label)
        return {(self.seed, r.task_id, r.attempt): bool(r.success) for r in rows if r.success is not None}

    def points(self) -> dict[int, str]:
        """Map iterations to their evaluations: before, during and after training."""
        labels = {0: "before", self.planned: "after"}
        labels |= {k: label for label in self._by_label if (k := point_of(label)) is not None}
        return dict(sorted(labels.items()))

    def curve(self) -> dict[int, float]:
        """Return the held-out pass rate by iteration."""
        return {k: self.score(label).rate for k, label in self.points().items() if self.score(label).tried}

    def pass_rate_windows(self) -> dict[int, float]:
        """Return the mean training pass rate of each window between pool updates, by its last iteration."""
        rates = [metrics.get("pass_rate") for metrics in self.metrics]
        windows = {end: rates[end - self.update_every : end] for end in self._window_ends()}
        known = {end: [float(rate) for rate in window if rate is not None] for end, window in windows.items()}
        return {end: fmean(window) for end, window in known.items() if window}

    def reward_windows(self) -> dict[int, float]:
        """Return the share of applicable verdicts that passed in each window; omit windows without verdicts."""
        found = {}
        for end in self._window_ends():
            counts = [self.verdicts[k] for k in range(end - self.update_every, end) if k in self.verdicts]
            if evaluations := sum(total for _, total in counts):
                found[end] = sum(passes for passes, _ in counts) / evaluations
        return found

    def _window_ends(self) -> range:
        return range(self.update_every, len(self.metrics) + 1, self.update_every)

    @property
    def update_every(self) -> int:
        return int(self.config["pool"]["update_every"])

    def turnover(self) -> dict[int, tuple[int, int, int]]:
        """Map each scheduled update's iteration to its rubrics: (active after it, added in it, retired in it)."""
        found = {}
        for number in self._window_ends():
            added, retired = (self._happened(kinds, number) for kinds in (ADDING, ("retire",)))
            active = sum(self._happened(ADDING, n) - self._happened(("retire",), n) for n in range(number + 1))
            found[number] = active, added, retired
        return found

    def _happened(self, kinds: Collection[str], iteration: int) -> int:
        return sum(event.kind in kinds and event.iteration == iteration for event in self.events)

    def stage(self, k: int) -> int:
        """Return the third of the run (0, 1 or 2) that contains iteration k, counted from 0."""
        return sum(k >= edge for edge in stage_edges(self.planned)[1:3])

    def all_failure_by_stage(self) -> list[dict[str, tuple[int, int]]]:
        """Return, for each stage, task to (groups that all failed, complete groups)."""
        found: list[dict[str, tuple[int, int]]] = [{}, {}, {}]
        for group in self.groups:
            if group.rewarded == group.size:
                failed, seen = found[self.stage(group.k)].get(group.task_id, (0, 0))
                found[self.stage(group.k)][group.task_id] = failed + (group.successes == 0), seen + 1
        return found

    def all_failures(self, iterations: int) -> tuple[int, int]:
        """Return (groups that all failed, complete groups) of the first iterations."""
        complete = [group for group in self.groups if group.k < iterations and group.rewarded == group.size]
        return sum(group.successes == 0 for group in complete), len(complete)

    def contrast_by_stage(self) -> list[tuple[Tally, Tally]]:
        """Return, for each stage, verdicts with and without the skill, of iterations that showed it."""
        found = [(Tally(), Tally())] * len(STAGES)
        for k, pair in self.contrasts.items():
            before = found[self.stage(k)]
            with_it, without = (Tally(*map(sum, zip(*both, strict=True))) for both in zip(before, pair, strict=True))
            found[self.stage(k)] = with_it, without
        return found

    def later(self, row: Mapping[str, Any]) -> dict[int, tuple[float | None, int]]:
        """Return a retired rubric's pass rate and verdicts at later checkpoints of the schedule."""
        every = int(self.config["storage"]["keep_every"]) or 1
        return {k: (rate, count) for k, (rate, count) in row["later"].items() if k % every == 0 or k == self.planned}

    def later_tallies(self) -> list[Tally]:
        """Return a tally per retired rubric and later checkpoint of the schedule; some are empty."""
        rates = [rate for row in self.retention for rate in self.later(row).values()]
        return [Tally(round((rate or 0.0) * count), count) for rate, count in rates]

    def words_of(self, kind: str) -> list[str]:
        """Return the criterion of every event of a kind."""
        return [self.criteria[event.rubric_id] for event in self.events if event.kind == kind]

    @property
    def watched(self) -> Tally:
        """Return verdicts on retired rubrics that are still being judged."""
        passes, evaluations = (sum(int(m.get(n, 0)) for m in self.metrics) for n in ("watched_passes", "watched"))
        return Tally(passes, evaluations)

    @property
    def skill_bytes(self) -> int:
        return sum(row.skill_bytes for row in self.attempts)


Study = dict[str, list[RunMeasures]]
"""Runs by method in display order, each method's sorted by seed."""


def stage_edges(iterations: int) -> list[int]:
    """Return the boundaries between the thirds of a run."""
    return [iterations * part // 3 for part in range(4)]


def measure(folder: Path, method: str) -> RunMeasures:
    """Measure one run folder."""
    with RunReader.open(folder) as run:
        config = run.config()
        edges = stage_edges(int(config["train"]["iterations"]))
        return RunMeasures(
            method,
            int(config["train"]["seed"]),
            folder,
            config,
            run.recorded_facts(),
            [iteration.metrics for iteration in run.iterations()],
            run.attempts(),
            run.events(),
            run.groups(),
            [run.cell_draws(first, last - 1) for first, last in pairwise(edges)],
            {sums.k: (sums.passes, sums.evaluations) for sums in run.verdict_sums()},
            run.iteration_seconds(),
            contrasts(run),
            {rubric.id: rubric.criteria_text for rubric in run.rubrics()},
            curves(retired(run), run),
        )


def read_study(paths: Sequence[Path]) -> Study:
    """Read runs from run folders and comparison folders; name a single run after its folder."""
    study: Study = {}
    for method, folder in dict.fromkeys((m, f.resolve()) for path in paths for m, f in _runs_of(path)):
        study.setdefault(method, []).append(measure(folder, method))
    for method, runs in study.items():
        runs.sort(key=lambda run: run.seed)
        for one, other in pairwise(runs):
            if one.seed == other.seed:
                raise AriseError(
                    "storage",
                    Exit.STORAGE,
                    f"{one.folder} and {other.folder} are both called {method!r} and have seed {one.seed}",
                    "nothing was written",
                    "name one of them, or give their folders different names",
                )
    if not study:
        raise AriseError(
            "storage", Exit.STORAGE, "no run was found", "nothing was written", "name run or comparison folders"
        )
    return study


def _runs_of(path: Path) -> list[tuple[str, Path]]:
    if (path / "comparison.json").is_file():
        page = read_plan(path)
        places = [(m, run_folder(path, m, seed)) for m in page["methods"] for seed in page["seeds"]]
        return [(method, folder) for method, folder in places if (folder / "config.toml").is_file()]
    of_a_comparison = path.parent.parent.name == "runs" and path.name.startswith("seed-")
    return [(path.parent.name if of_a_comparison else path.resolve().name, path)]


def finished_only(study: Study) -> Study:
    """Return the study without unfinished runs."""
    kept = {method: [run for run in runs if run.finished] for method, runs in study.items()}
    return {method: runs for method, runs in kept.items() if runs}
