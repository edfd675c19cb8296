"""Plan a comparison: one configuration per method and seed, with equal budgets enforced."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from arise.config import Config
from arise.config.file import ConfigError, differences, load_config
from arise.errors import AriseError, Exit
from arise.report.comparison.document import counted

METHODS = (
    "arise",
    "frozen-rubrics",
    "no-skill-injection",
    "no-adaptive-sampling",
    "vade-sampling",
    "outcome-only",
    "vade",
    "online-rubrics",
    "ruscarl",
)
"""All methods of the paper, in its order."""

MATCHED = ("train", "sampling", "optimizer", "loss", "tasks", "model", "policy", "agent", "evaluation", "budget")
SCHEDULE = {"pool": "update_every", "evidence": "window"}
CURVE_POINTS = 8


@dataclass(frozen=True)
class Member:
    """One run of a comparison — `Member("vade", 3, config, Path("out/runs/vade/seed-3"))`."""

    method: str
    seed: int
    config: Config
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.method} seed {self.seed}"


@dataclass(frozen=True)
class Comparison:
    """All runs of a comparison and the requested options."""

    folder: Path
    bases: tuple[Path, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    overrides: tuple[str, ...]
    shared: Config
    members: tuple[Member, ...]

    def member(self, method: str, seed: int) -> Member | None:
        return next((m for m in self.members if (m.method, m.seed) == (method, seed)), None)

    def config_file(self, member: Member) -> Path:
        return self.folder / "configs" / f"{member.method}-seed-{member.seed}.toml"

    def log_file(self, member: Member) -> Path:
        return self.folder / "logs" / f"{member.method}-seed-{member.seed}.log"


def plan(
    bases: Sequence[Path], methods: Sequence[str], seeds: Sequence[int], overrides: Sequence[str], folder: Path
) -> Comparison:
    """Resolve all configurations; refuse an unfair comparison before any run starts.

    Base files are merged left to right; the methods' overlays lie beside the first.
    """
    shared = _shared(bases, overrides)
    overlays = {method: _overlay(bases[0], method) for method in methods}
    with TemporaryDirectory() as scratch:
        ground = Path(scratch) / "base.toml"
        ground.write_text(_toml(shared))
        members = [
            Member(method, seed, _resolved(ground, overlays, method, seed, folder), run_folder(folder, method, seed))
            for seed in seeds
            for method in methods
        ]
    found = Comparison(folder, tuple(bases), tuple(methods), tuple(seeds), tuple(overrides), shared, tuple(members))
    problems = [*unmatched(found.members), *_changed(found.members)]
    if problems:
        raise ConfigError(problems, f"{' and '.join(map(str, bases))} with {', '.join(methods)}")
    return found


def _shared(bases: Sequence[Path], overrides: Sequence[str]) -> Config:
    """Return the configuration shared by all methods, with evaluations and checkpoints along the learning curve."""
    config = load_config(bases, overrides)
    every = config.evaluation.every or max(1, -(-config.train.iterations // CURVE_POINTS))
    wanted = [f"evaluation.every={every}", f"storage.keep_every={config.storage.keep_every or every}"]
    return load_config(bases, [*overrides, *wanted])


def _resolved(ground: Path, overlays: Mapping[str, Path], method: str, seed: int, folder: Path) -> Config:
    """Apply a method's overlay to the shared configuration; it takes precedence over `--set`."""
    files, own = [ground, overlays[method]], [f"train.seed={seed}"]
    config = load_config(files, own)
    if not config.pool.lifecycle:
        return config
    if "arise" not in overlays:
        raise _refusal(
            f"{method} starts from the rubrics of the ARISE run of the same seed: arise is not compared",
            "add arise to --methods",
        )
    return load_config(files, [*own, f"pool.lifecycle={json.dumps(str(lifecycle_file(folder.resolve(), seed)))}"])


def run_folder(folder: Path, method: str, seed: int) -> Path:
    """Return the folder of a run of a comparison."""
    return folder / "runs" / method / f"seed-{seed}"


def lifecycle_file(folder: Path, seed: int) -> Path:
    """Return the exported pool of a seed's ARISE run, from which other methods start."""
    return run_folder(folder, "arise", seed) / "lifecycle.json"


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse a list of seeds — `0-4`, `1,3,8-9`."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.strip().partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError:
        seeds = []
    if not seeds or len(set(seeds)) != len(seeds):
        raise _refusal(f"--seeds {text!r} is not a list of different seeds", "write it as 0-4 or 0,2,5-7")
    return tuple(seeds)


def parse_methods(text: str) -> tuple[str, ...]:
    """Parse method names, or `all`."""
    methods = METHODS if text.strip() == "all" else tuple(part.strip() for part in text.split(",") if part.strip())
    if not methods or len(set(methods)) != len(methods):
        raise _refusal(f"--methods {text!r} is not a list of different methods", f"choose among {', '.join(METHODS)}")
    return methods


def unmatched(members: Sequence[Member]) -> list[str]:
    """Return one line per difference in weights, tasks, rollouts, optimiser or judge within a seed."""
    problems = []
    for seed in dict.fromkeys(member.seed for member in members):
        for one, other in combinations([member for member in members if member.seed == seed], 2):
            problems += [
                f"{key}: {other.method} differs from {one.method}; budgets must be the same"
                for key in _different(one.config, other.config)
            ]
    return list(dict.fromkeys(problems))


def _different(one: Config, other: Config) -> Iterator[str]:
    for section, changed in differences(one, other).items():
        mine, theirs = getattr(one, section), getattr(other, section)
        if section in MATCHED:
            yield from (f"{section}.{key}" for key in changed if key != "kind" or mine.kind != theirs.kind)
        elif section in SCHEDULE:
            yield from (f"{section}.{key}" for key in changed if key == SCHEDULE[section])
        elif section == "credit":
            yield from (f"credit.{key}" for key in changed if key.startswith("length_"))
        elif section == "judge" and "none" not in (mine.kind, theirs.kind):
            yield from (f"judge.{key}" for key in changed if key != "kind" or mine.kind != theirs.kind)


def write_plan(comparison: Comparison, facts: Mapping[str, Any]) -> None:
    """Write the plan and every configuration, so that each run can also be started by hand."""
    for member in comparison.members:
        path = comparison.config_file(member)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_toml(member.config))
    (comparison.folder / "base.toml").write_text(_toml(comparison.shared))
    page = {
        "format": "arise-comparison",
        "version": 1,
        "base": str(comparison.bases[0]),
        "bases": [str(path) for path in comparison.bases],
        "methods": list(comparison.methods),
        "seeds": list(comparison.seeds),
        "overrides": list(comparison.overrides),
        **facts,
    }
    draft = comparison.folder / ".comparison.json"
    draft.write_text(json.dumps(page, indent=2) + "\n")
    draft.replace(comparison.folder / "comparison.json")


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the plan that `write_plan` wrote."""
    try:
        page = json.loads((folder / "comparison.json").read_text())
    except (OSError, ValueError):
        page = None
    kinds = {"base": str, "methods": list, "seeds": list}
    if not isinstance(page, dict) or not all(isinstance(page.get(key), kind) for key, kind in kinds.items()):
        raise AriseError(
            "storage",
            Exit.STORAGE,
            f"{folder} holds no comparison",
            "nothing was done",
            "name a folder that `arise compare` made",
        )
    return page


def budget_lines(comparison: Comparison) -> list[str]:
    """Describe the shared budget in lines to print before the runs start."""
    config = comparison.members[0].config
    train = config.train
    rollouts = train.tasks_per_iteration * train.group_size
    return [
        f"{counted(len(comparison.methods), 'method')} x {counted(len(comparison.seeds), 'seed')} "
        f"= {counted(len(comparison.members), 'run')}",
        f"matched: {train.iterations} iterations x {train.tasks_per_iteration} tasks x {train.group_size} rollouts "
        f"= {train.iterations * rollouts} rollouts a run; the same start, tasks, optimiser, agent and evaluation",
        f"held out: {counted(config.evaluation.attempts, 'attempt')} a task before and after, "
        f"{config.evaluation.attempts_on_the_way} every {config.evaluation.every} iterations",
    ]


def _overlay(base: Path, method: str) -> Path:
    path = base.parent / "methods" / f"{method}.toml"
    if not path.is_file():
        raise _refusal(
            f"no method {method!r}: {path} is not there",
            f"choose among {', '.join(METHODS)}, or write that file",
        )
    return path


def _changed(members: Sequence[Member]) -> Iterator[str]:
    """Yield existing runs with another configuration, which a comparison cannot mix."""
    for member in members:
        path = member.folder / "config.toml"
        if path.is_file() and (changed := differences(member.config, load_config(path))):
            section, values = next(iter(changed.items()))
            key = next((key for key in values if key != "kind"), "kind")
            yield f"{section}.{key}: {member.folder} was started with another value; give another --out or restore it"


def _toml(config: Config) -> str:
    return tomli_w.dumps(config.model_dump(exclude_none=True))


def _refusal(what: str, remedy: str) -> AriseError:
    return AriseError("compare", Exit.CONFIG, what, "nothing was started", remedy)
