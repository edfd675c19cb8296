"""The parts of `arise analyze`: offline detectors, task instructions, and the analysis of paths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from arise.analyst.catalogue import wordings
from arise.analyst.detectors import find_all
from arise.analyst.habits import HabitFinding, Scene, find_habits, habit_texts
from arise.analyst.reflector import first_skill
from arise.analyst.trace import read_trace
from arise.analyze.against import Comparison, compare
from arise.analyze.analysis import Analysis, analysis_of, collect
from arise.analyze.behaviours import Behaviour, Sighting
from arise.analyze.found import Found, Options
from arise.analyze.quotes import is_verified
from arise.analyze.scan import Scan
from arise.errors import AriseError, Exit

FIELDS = ("messages", "outcome", "task", "instruction", "model", "error", "checksum", "group", "attempt", "stop")
ABOUT_DATA = frozenset(("P01", "P06", "P07", "P08", "P13", "P14", "P16", "P18", "P19", "P20"))
"""Patterns about input files and guides, left out in source repositories: there a README is no instruction."""


def detect(found: Found) -> Sequence[Sighting]:
    """Return the applicable patterns of the catalogue in one attempt; reward and system prompt are not read."""
    trace = read_trace(found.task, found.trajectory)
    patterns = [
        Sighting(pattern_id, not finding.passed, finding.miss, finding.detail, finding.turn)
        for pattern_id, finding in find_all(trace).items()
        if not (trace.repository and pattern_id in ABOUT_DATA)
    ]
    patterns = _without_repeats(patterns)
    habits = find_habits(Scene(found.task, found.trajectory, trace, found.trajectory.system_prompt))
    return patterns + [_sighting(name, finding, found) for name, finding in habits.items()]


def _without_repeats(patterns: list[Sighting]) -> list[Sighting]:
    """Leave out a read-back that failed on the same check as the finding about checks: one event, one finding."""
    check = next((s for s in patterns if s.behaviour == "P12" and s.present), None)
    return [s for s in patterns if not (check and s.behaviour == "P02" and s.detail == check.detail)]


def _sighting(name: str, finding: HabitFinding, found: Found) -> Sighting:
    """Return a habit as a sighting; its own words are the quote if they occur in the turn."""
    first, *also = finding.turns or (0,)
    turns = found.trajectory.turns
    quoted = finding.quote if 0 < first <= len(turns) and is_verified(finding.quote, turns[first - 1]) else ""
    return Sighting(name, finding.present, finding.miss, finding.detail, first, quoted, tuple(also))


def behaviours() -> tuple[Behaviour, ...]:
    """Return the catalogue and the habits as behaviours to count."""
    habits = tuple(
        Behaviour(
            name, text.name, text.capability, text.issue_tag, text.criterion, text.applies, text.rule,
            {key: what for key, (what, _) in text.misses.items()}, text.skill,
            {key: advice for key, (_, advice) in text.misses.items()},
        )
        for name, text in habit_texts().items()
    )  # fmt: skip
    return habits + tuple(
        Behaviour(
            id=w.pattern.id,
            name=w.pattern.name.replace("_", " "),
            capability=w.pattern.capability,
            issue_tag=w.pattern.issue_tag,
            criterion=w.criterion,
            condition=w.applies,
            rule=w.rule,
            misses={key: miss.signal for key, miss in w.misses.items()},
            skill=w.skill,
            advice={key: first_skill(w, key) for key in w.misses},
        )
        for w in wordings().values()
    )


def instructions_of(folder: Path | None) -> dict[str, str]:
    """Return instructions by task id from a folder of tasks, for trajectories that record only the id."""
    if folder is None:
        return {}
    found: dict[str, str] = {}
    for file in sorted([*folder.rglob("instruction.md"), *folder.rglob("task.md")]):
        if file.parent.name not in ("environment", "solution", "tests"):
            found.setdefault(file.parent.name, file.read_text(encoding="utf-8", errors="replace"))
    if not found:
        raise AriseError(
            "tasks", Exit.TASKS, f"{folder} holds no instruction.md and no task.md", "nothing was read",
            "name a folder of task folders, or leave --tasks out",
        )  # fmt: skip
    return found


def field_map(entries: Sequence[str]) -> dict[str, str]:
    """Parse `--map outcome=reward,task=id` into a mapping; raise if no reader has a field of that name."""
    found: dict[str, str] = {}
    for entry in (part for text in entries for part in text.split(",") if part.strip()):
        name, given, value = entry.strip().partition("=")
        if not given or not value or name not in FIELDS:
            raise AriseError(
                "config", Exit.CONFIG, f"--map {entry.strip()}: expected FIELD=NAME", "nothing was read",
                f"fields are {', '.join(FIELDS)}; for example --map outcome=reward,task=id",
            )  # fmt: skip
        found[name] = value
    return found


def require_paths(paths: Sequence[Path]) -> None:
    """Raise if a path does not exist."""
    for path in paths:
        if not path.exists():
            raise AriseError(
                "config", Exit.CONFIG, f"{path} does not exist", "nothing was read", "name a file or folder"
            )


@dataclass(frozen=True)
class Inputs:
    """Inputs shared by all analyses of one command."""

    fields: Mapping[str, str] = field(default_factory=dict)
    tasks: Path | None = None
    """A folder of task folders, for instructions by task id."""
    outcomes: str = ""
    """A table of outcomes: its path, or its name in the folder of each attempt."""
    seed: int = 0
    progress: Callable[[int], None] | None = None

    @cached_property
    def instructions(self) -> Mapping[str, str]:
        return instructions_of(self.tasks)

    def scan(self, paths: Sequence[Path]) -> Scan:
        """Return a scan of existing paths."""
        require_paths(paths)
        return Scan(paths, Options(self.fields, self.instructions, self.outcomes))


def analyze(paths: Sequence[Path], inputs: Inputs | None = None) -> Analysis:
    """Read paths and count behaviours with the offline detectors."""
    inputs = inputs or Inputs()
    scan = inputs.scan(paths)
    collected = collect(scan, detect, inputs.seed, inputs.progress)
    return analysis_of(scan, collected, behaviours(), inputs.seed)


def compare_sets(ours: Sequence[Path], theirs: Sequence[Path], inputs: Inputs) -> Comparison:
    """Read both sets in the same way and compare them task by task."""
    first, second = analyze(ours, inputs), analyze(theirs, inputs)
    return compare(first.attempts, second.attempts, behaviours())
