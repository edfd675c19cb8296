"""Needs of a task that a kind of sandbox does not meet; none is ignored silently."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from arise.config.tasks import TaskNeed
from arise.sandbox.choose import why_no_images
from arise.sandbox.plain import beyond_plain
from arise.tasks.compose import read_compose
from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.tasks.unsupported import prior_trajectories, unsupported, verifiers_of
from arise.tasks.variables import host_references
from arise.types import Place, SandboxCapabilities, TaskSpec

AUTO = 'set sandbox.kind = "auto"'
_BY_ENGINE = frozenset(
    {"docker_image", "dockerfile", "healthcheck", "setup_commands", "user", "workdir", "memory", "storage", "network"}
    | {"verifier_environment", "collect", "artifacts", "skills_dir", "steps"}
)
"""Needs that sandboxes with images meet."""


@dataclass(frozen=True)
class Unmet:
    """One unmet need of a task — `Unmet("gpus", path, "environment.gpus: asks for 1, ...")`."""

    need: TaskNeed | Literal["steps", "format"]
    """`steps` and `format` cannot be ignored: without them a task cannot run at all."""
    path: Path
    what: str
    remedy: str = ""
    """How it would be met."""

    @property
    def problem(self) -> TaskProblem:
        """Return the need as a problem with its remedy."""
        engine = f"{self.remedy}; else " if self.remedy else ""
        if self.need == "format":
            return TaskProblem(self.path, self.what, AUTO)
        if self.need == "steps":
            return TaskProblem(self.path, self.what, f"{engine}make each step a separate task")
        remedy = f'{engine}change the task, or add "{self.need}" to tasks.ignore if it does without'
        return TaskProblem(self.path, self.what, remedy)


def refused(task: TaskSpec, offered: SandboxCapabilities, ignore: Collection[str] = ()) -> list[TaskProblem]:
    """Return one problem for each unmet need that is not in `ignore`."""
    found = [unmet for unmet in unmet_needs(task, offered) if unmet.need == "format" or unmet.need not in ignore]
    by_image = "" if offered.images else _image_remedy(task)
    return [(replace(unmet, remedy=by_image) if unmet.need in _BY_ENGINE else unmet).problem for unmet in found]


def _image_remedy(task: TaskSpec) -> str:
    """Return how a task gets a sandbox with an image, which meets most needs."""
    if task.environment.image or task.environment.dockerfile is not None:
        return why_no_images()[1] or AUTO
    return "give it an image by environment/Dockerfile or environment.docker_image"


def without(task: TaskSpec, ignore: Collection[str]) -> TaskSpec:
    """Return the task without its image or Dockerfile if these are in `ignore`."""
    image = "" if "docker_image" in ignore else task.environment.image
    dockerfile = None if "dockerfile" in ignore else task.environment.dockerfile
    return replace(task, environment=replace(task.environment, image=image, dockerfile=dockerfile))


def unmet_needs(task: TaskSpec, offered: SandboxCapabilities) -> Iterator[Unmet]:
    """Yield the needs of a task that the sandboxes do not meet."""
    path, place = task.file, task.environment
    parts = [(section, part.network, part.user) for section, part in _places(task)]
    parts += [("agent", task.agent.network, task.agent.user)]
    parts += [(section, part.network, part.user) for section, part in verifiers_of(task)]
    for section, network, user in parts:
        yield from _network(path, section, network, offered)
        if user and not offered.users:
            yield Unmet("user", path, f"{section}.user: asks for {user!r}, a sandbox has one user")
    if offered.workdir and place.workdir not in ("", offered.workdir):
        what = f"environment.workdir: asks for {place.workdir!r}, a sandbox has {offered.workdir}"
        yield Unmet("workdir", path, what)
    for section, each in _places(task):
        yield from _resources(path, section, each, offered)
    for need, (name, asked, met) in _features(task, offered).items():
        if asked and not met:
            yield Unmet(need, path, f"{name}: is not supported by {offered.kind} sandboxes")
    if task.steps and not offered.steps:
        yield Unmet("steps", path, f"steps: {offered.kind} sandboxes do not run tasks of several steps")
    if offered.kind == "harbor":
        yield from _for_harbor(task)
    else:
        yield from _references(task)
        yield from (Unmet(*found) for found in unsupported(task))
    if not (offered.kind == "harbor" and offered.steps):  # then the agent is Harbor's own
        yield from (Unmet(*found) for found in prior_trajectories(task))
    yield from _image(task, offered)


def _network(path: Path, section: str, network: str, offered: SandboxCapabilities) -> Iterator[Unmet]:
    kind, _, listed = network.partition(":")
    if kind == "deny":
        what = f"{section}.blocked_hosts, {section}.blocked_urls: nothing keeps programs from {listed}"
        yield Unmet("network", path, what)
    elif network and kind not in offered.networks:
        has = ", ".join(sorted(offered.networks))
        yield Unmet("network", path, f"{section}.network_mode: asks for {network!r}, a sandbox has {has}")


def _references(task: TaskSpec) -> Iterator[Unmet]:
    """Yield the variables that ask for a value of this machine and have no default; they would be empty."""
    for section, name, variable in host_references(task.given):
        what = f"{section}.env.{name}: asks for ${variable} of this machine, which no sandbox sees"
        yield Unmet("env", task.file, what)


def _for_harbor(task: TaskSpec) -> Iterator[Unmet]:
    """Yield what keeps Harbor from running a task at all."""
    if task.layout != "harbor":
        yield Unmet("format", task.file, "is in BenchFlow's format, which Harbor does not read")
    elif not (task.environment.image or task.environment.dockerfile or task.compose_file):
        yield Unmet("format", task.file, "names no image and has no Dockerfile, and an environment of Harbor needs one")


def _features(task: TaskSpec, offered: SandboxCapabilities) -> dict[TaskNeed, tuple[str, object, bool]]:
    """Return for each yes-or-no need: its key in the task file, the task's value, and whether sandboxes offer it."""
    place, checks = task.environment, [verifier for _, verifier in verifiers_of(task)]
    apart = any(check.place is not None for check in checks)
    return {
        "docker_image": ("environment.docker_image", place.image, offered.images),
        "env": ("environment.env", place.env, offered.env),
        "healthcheck": ("environment.healthcheck", place.healthcheck, offered.healthcheck),
        "mcp_servers": ("environment.mcp_servers", task.mcp_servers, False),
        "skills_dir": ("environment.skills_dir", task.skills_dir, offered.images),
        "setup_commands": ("environment.setup_commands", place.setup, offered.setup),
        "prompt_prefix": ("agent.prompt_prefix", task.agent.prompt_prefix, False),
        "verifier_environment": ("verifier.environment", apart, offered.separate_verifier),
        "collect": ("verifier.collect", any(check.collect for check in checks), offered.separate_verifier),
        "service": ("verifier.service", any(check.service for check in checks), offered.compose),
        "pytest_plugins": ("verifier.pytest_plugins", any(check.pytest_plugins for check in checks), offered.images),
        "artifacts": ("artifacts", task.artifacts, offered.separate_verifier),
    }


def _places(task: TaskSpec) -> Iterator[tuple[str, Place]]:
    """Yield each environment that a task describes, with the name of its section."""
    own = task.environment
    yield "environment", own
    for section, check in verifiers_of(task):
        place = check.place
        if place and replace(own, files=place.files, image=place.image, dockerfile=place.dockerfile) != place:
            yield f"{section}.environment", place


def _resources(path: Path, section: str, place: Place, offered: SandboxCapabilities) -> Iterator[Unmet]:
    """Yield the resources of which the task requires more than a sandbox offers."""
    if place.gpu_types and offered.gpus is not None:
        yield Unmet("gpu_types", path, f"{section}.gpu_types: asks for {', '.join(place.gpu_types)}, there is no GPU")
    if place.tpu and not offered.tpus:
        yield Unmet("tpu", path, f"{section}.tpu: asks for {place.tpu}, a sandbox has none")
    amounts: tuple[tuple[TaskNeed, str, float, float | None], ...] = (
        ("cpus", "cpus", place.cpus, offered.cpus),
        ("memory", "memory_mb", place.memory_mb, offered.memory_mb),
        ("storage", "storage_mb", place.storage_mb, offered.storage_mb),
        ("gpus", "gpus", place.gpus, offered.gpus),
    )
    for need, name, asked, there in amounts:
        if there is not None and asked > there:
            yield Unmet(need, path, f"{section}.{name}: asks for {asked:g}, a sandbox has {there:g}")


def _image(task: TaskSpec, offered: SandboxCapabilities) -> Iterator[Unmet]:
    if task.compose_file is not None and not offered.compose:
        yield from (Unmet("compose", task.compose_file, what) for what in read_compose(task.compose_file).beyond)
    path = task.environment.dockerfile
    text = read_text(path) if path is not None and not offered.images else ""
    if path is None or not isinstance(text, str):
        return
    if line := beyond_plain(text):
        what = f"is not built, and the sandbox has the programs of this machine only: {line[:80]!r}"
        yield Unmet("dockerfile", path, what)
