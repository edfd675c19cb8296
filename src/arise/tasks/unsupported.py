"""Parts of the two task formats that ARISE's own sandboxes and agents do not honour, each with the name of its need."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from arise.config.tasks import TaskNeed
from arise.tasks.frontmatter import sections, split_frontmatter
from arise.tasks.keys import unknown
from arise.tasks.scan import read_text
from arise.types import TaskSpec, VerifierSpec

Found = tuple[TaskNeed, Path, str]
_DOCUMENT: dict[str, tuple[TaskNeed, str]] = {
    "agents": ("roles", "several roles are not supported"),
    "scenes": ("roles", "scenes are not supported"),
    "user": ("roles", "a simulated user is not supported"),
    "profile": ("profile", "the defaults of a profile are not applied"),
    "profiles": ("profile", "the defaults of profiles are not applied"),
    "benchflow": ("benchflow", "settings of BenchFlow itself have no effect"),
}
"""Keys of a task.md that are not in a task.toml."""
_ONLY_NOTED = {"benchflow": frozenset({"document_version"})}
"""Keys within them that say nothing about how a task runs."""
_PROMPTS = ("role.*.md", "scene.*.md", "user-persona.md")


def unsupported(task: TaskSpec) -> Iterator[Found]:
    """Yield need, path and reason of each part of a task that no sandbox of ARISE's own honours."""
    yield from _files(task)
    yield from _verifiers(task)
    yield from _stages(task)
    if task.layout == "benchflow":
        yield from _document(task)


def prior_trajectories(task: TaskSpec) -> Iterator[Found]:
    """Yield the trajectories that an agent shall continue; agents of ARISE begin anew."""
    folders = (task.directory, *(task.directory / "steps" / step.name for step in task.steps))
    for path in (folder / "trajectory.json" for folder in folders):
        if path.exists():
            yield "prior_trajectory", path, "agents do not continue a prior trajectory"


def _files(task: TaskSpec) -> Iterator[Found]:
    parts = [folder for _, verifier in verifiers_of(task) for folder in verifier.folders]
    solutions = (task.solution, *(step.solution for step in task.steps))
    parts += [each.folder for each in solutions if each is not None]
    for path in sorted({found for part in parts for found in part.rglob(".harborignore")}):
        yield "harborignore", path, "has no effect: every file of the folder is copied"
    for at, artifact in enumerate((*task.artifacts, *(each for step in task.steps for each in step.artifacts))):
        if artifact.exclude:
            yield "artifacts", task.file, f"artifacts.{at}.exclude: is not supported"
        if artifact.service not in ("", "main"):
            yield "service", task.file, f"artifacts.{at}.service: there is no other container than main"


def _verifiers(task: TaskSpec) -> Iterator[Found]:
    for section, verifier in verifiers_of(task):
        if verifier.keep_conftests:
            yield "hardening", task.file, f"{section}.hardening.cleanup_conftests: is always on"
        for at, hook in enumerate(verifier.collect):
            if hook.get("service", "main") != "main":
                yield "service", task.file, f"{section}.collect.{at}.service: there is no other container than main"


def verifiers_of(task: TaskSpec) -> list[tuple[str, VerifierSpec]]:
    """Return every verifier of a task with the name of its section."""
    return [(f"steps.{step.name}.verifier", step.verifier) for step in task.steps] or [("verifier", task.verifier)]


def _stages(task: TaskSpec) -> Iterator[Found]:
    """Yield what a step asks for its agent in another way than the task; all steps share one sandbox."""
    place = task.place
    for step in task.steps:
        section = f"steps.{step.name}.agent"
        if step.agent.user not in ("", place.user):
            yield "user", task.file, f"{section}.user: all steps run as one user"
        if step.agent.network not in ("", place.network):
            yield "network", task.file, f"{section}.network_mode: all steps have one network"
        if step.agent.prompt_prefix:
            yield "prompt_prefix", task.file, f"{section}.prompt_prefix: is not supported"


def _document(task: TaskSpec) -> Iterator[Found]:
    for key, (need, reason) in _DOCUMENT.items():
        asked = task.given.get(key)
        if asked and not (isinstance(asked, Mapping) and asked.keys() <= _ONLY_NOTED.get(key, frozenset())):
            yield need, task.file, f"{key}: {reason}"
    for key, _ in unknown(task.given):
        yield "unknown_keys", task.file, f"{key}: is no key of BenchFlow's format"
    for path in sorted(path for name in _PROMPTS for path in (task.directory / "prompts").glob(name)):
        yield "roles", path, "several roles and simulated users are not supported"
    text = read_text(task.file)
    parts = split_frontmatter(text) if isinstance(text, str) else None
    for name in sections(parts[1]).keys() - {"prompt"} if parts is not None else ():
        yield "roles", task.file, f"## {name}: several roles and simulated users are not supported"
    path = task.verifier.tests / "verifier.md"
    if path.exists() and (kind := _strategy(path)) != "script":
        yield "verifier_document", path, f"asks for a verifier of the type {kind!r}, and only test.sh is run"


def _strategy(path: Path) -> str:
    """Return the type of the default strategy of a verifier.md; `script` if it names none."""
    text = read_text(path)
    parts = split_frontmatter(text) if isinstance(text, str) else None
    try:
        given = yaml.safe_load(parts[0]) if parts is not None else None
    except yaml.YAMLError:
        return "unreadable"
    verifier = given.get("verifier") if isinstance(given, Mapping) else None
    strategies = verifier.get("strategies") if isinstance(verifier, Mapping) else None
    if not isinstance(verifier, Mapping) or not isinstance(strategies, Mapping) or not strategies:
        return "script"
    chosen = strategies.get(verifier.get("default_strategy") or next(iter(strategies)))
    return str(chosen.get("type", "unknown")) if isinstance(chosen, Mapping) else "unknown"
