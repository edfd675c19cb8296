"""What a task asks for that a sandbox without containers does not give, each by name: none is ignored silently."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from arise.config.tasks import TaskNeed
from arise.sandbox.limits import MIB, Limits
from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text
from arise.tasks.schema import TaskFile

WORKDIR = "/app"
COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml", "singularity-compose.yaml")
# A Dockerfile that asks for no more than the sandbox is: a plain system with the task's files in the working directory.
_PLAIN = re.compile(
    r"FROM\s+(debian|ubuntu)(:[\w.-]+)?|WORKDIR\s+/app/?|COPY\s+\./?\s+(\.|\./|/app/?)|(LABEL|MAINTAINER)\s.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Unmet:
    """One thing that a task asks for in vain — `Unmet("gpus", path, "environment.gpus: asks for 1, ...")`."""

    need: TaskNeed
    path: Path
    what: str

    @property
    def problem(self) -> TaskProblem:
        """Why the task is refused, and how it need not be."""
        remedy = f'change the task, or add "{self.need}" to tasks.ignore if it does without'
        return TaskProblem(self.path, self.what, remedy)


def refused(asked: Collection[Unmet], ignore: Collection[str]) -> list[TaskProblem]:
    """One problem for each unmet need that is not to be ignored."""
    return [unmet.problem for unmet in asked if unmet.need not in ignore]


def unmet_needs(path: Path, file: TaskFile, environment: Path | None, limits: Limits | None = None) -> Iterator[Unmet]:
    """Everything that the task file at `path` and its environment folder ask for in vain."""
    place, agent, check = file.environment, file.agent, file.verifier
    for section, part in (("environment", place), ("agent", agent), ("verifier", check)):
        if part.network_mode in ("public", "allowlist"):
            asked = f"{section}.network_mode: asks for {part.network_mode!r}, a sandbox has no network"
            yield Unmet("network", path, asked)
    for section, part in (("agent", agent), ("verifier", check)):
        if part.user is not None:
            yield Unmet("user", path, f"{section}.user: asks for {part.user!r}, a sandbox has one user")
    if place.workdir not in (None, WORKDIR):
        yield Unmet("workdir", path, f"environment.workdir: asks for {place.workdir!r}, a sandbox has {WORKDIR}")
    yield from _resources(path, file, limits or Limits())
    given: dict[TaskNeed, tuple[str, object]] = {
        "docker_image": ("environment.docker_image", place.docker_image),
        "env": ("environment.env", place.env),
        "healthcheck": ("environment.healthcheck", place.healthcheck),
        "mcp_servers": ("environment.mcp_servers", place.mcp_servers),
        "skills_dir": ("environment.skills_dir", place.skills_dir),
        "setup_commands": ("environment.setup_commands", place.setup_commands),
        "prompt_prefix": ("agent.prompt_prefix", agent.prompt_prefix),
        "verifier_environment": ("verifier.environment", check.environment),
        "collect": ("verifier.collect", check.collect),
        "service": ("verifier.service", check.service),
        "pytest_plugins": ("verifier.pytest_plugins", check.pytest_plugins),
    }
    for need, (name, value) in given.items():
        if value:
            yield Unmet(need, path, f"{name}: is not supported without containers")
    if environment is not None:
        yield from _image(environment)


def _resources(path: Path, file: TaskFile, limits: Limits) -> Iterator[Unmet]:
    """What the task asks for more of than there is; to get more than it asks for does a task no harm."""
    place = file.environment
    amounts: tuple[tuple[TaskNeed, str, float | None, float], ...] = (
        ("cpus", "cpus", place.cpus, len(os.sched_getaffinity(0))),
        ("memory", "memory_mb", place.memory_mb, limits.memory_bytes / MIB),
        ("storage", "storage_mb", place.storage_mb, limits.disk_bytes / MIB),
        ("gpus", "gpus", place.gpus, 0),
    )
    for need, name, asked, there in amounts:
        if asked is not None and asked > there:
            yield Unmet(need, path, f"environment.{name}: asks for {asked:g}, a sandbox has {there:g}")


def _image(environment: Path) -> Iterator[Unmet]:
    for name in COMPOSE_FILES:
        if (environment / name).exists():
            yield Unmet("compose", environment / name, "starts other containers, which are not supported")
    path = environment / "Dockerfile"
    text = read_text(path) if path.exists() else ""
    if isinstance(text, str):
        lines = (line.strip() for line in re.sub(r"\\\n", " ", text).splitlines())
        for line in lines:
            if line and not line.startswith("#") and not _PLAIN.fullmatch(line):
                what = f"is not built, and the sandbox has the programs of this machine only: {line[:80]!r}"
                yield Unmet("dockerfile", path, what)
                return
