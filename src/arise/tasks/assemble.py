"""Assemble one `TaskSpec` from the file and the folders of a task; no setting is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from arise.tasks import schema
from arise.types import (
    AgentSpec,
    Artifact,
    Healthcheck,
    Place,
    SolutionSpec,
    StepSpec,
    Task,
    TaskSpec,
    VerifierSpec,
)

COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml", "singularity-compose.yaml")
BUILD_FILES = frozenset({"Dockerfile", ".dockerignore", *COMPOSE_FILES})
"""Files in environment/ that describe an image and are not visible to the agent."""


@dataclass(frozen=True)
class Parts:
    """The folders and the instruction of a task or of one step."""

    instruction: str
    tests: Path
    solution: Path | None


def task_spec(
    directory: Path,
    layout: Literal["harbor", "benchflow"],
    file: schema.TaskFile,
    given: Mapping[str, object],
    parts: Parts,
    steps: Sequence[Parts],
) -> TaskSpec:
    """Return the task in `directory`; `steps` are the folders of `file.steps`."""
    environment = directory / "environment"
    compose = next((path for name in COMPOSE_FILES if (path := environment / name).exists()), None)
    skills = environment / "skills"
    return TaskSpec(
        task=_task(directory, file, parts.instruction, skills),
        directory=directory,
        verifier=_verifier(file.verifier, parts.tests),
        layout=layout,
        environment=_place(file.environment, environment),
        agent=_agent(file.agent),
        solution=_solution(file.solution, parts.solution),
        steps=tuple(_one_of_several(*each, file.solution) for each in zip(file.steps, steps, strict=True)),
        reward_strategy=file.multi_step_reward_strategy or "",
        artifacts=_artifacts(file.artifacts),
        skills=skills if skills.is_dir() else None,
        skills_dir=file.environment.skills_dir or "",
        mcp_servers=tuple(file.environment.mcp_servers),
        compose_file=compose,
        metadata=file.metadata,
        given=given,
    )


def _task(directory: Path, file: schema.TaskFile, instruction: str, skills: Path) -> Task:
    category, types = file.metadata.get("category", ""), file.task_types
    return Task(
        id=file.task.name if file.task else directory.name,
        instruction=instruction,
        task_types=tuple(types) if isinstance(types, list) else (),
        domain=category if isinstance(category, str) else "",
        directory=str(directory),
        provided_skills=tuple(sorted(path.parent.name for path in skills.glob("*/SKILL.md"))),
    )


def _place(asked: schema.EnvironmentSection, folder: Path | None) -> Place:
    files = folder if folder is not None and folder.is_dir() else None
    dockerfile = files / "Dockerfile" if files is not None else None
    return Place(
        files=files,
        skip=tuple(sorted(BUILD_FILES)),
        image=asked.docker_image or "",
        dockerfile=dockerfile if dockerfile is not None and dockerfile.exists() else None,
        build_timeout=asked.build_timeout_sec,
        workdir=asked.workdir or "",
        env=asked.env,
        user=_name(asked.user),
        cpus=asked.cpus or 0.0,
        memory_mb=asked.memory_mb or 0.0,
        storage_mb=asked.storage_mb or 0.0,
        gpus=asked.gpus or 0.0,
        network=_network(asked.network_mode, asked.allowed_hosts),
        healthcheck=_healthcheck(asked.healthcheck),
        setup=tuple(asked.setup_commands),
    )


def _network(mode: str | None, hosts: Sequence[str]) -> str:
    """Convert a network mode to the notation of `Place`."""
    return f"allow:{','.join(hosts)}" if mode == "allowlist" else {"no-network": "none"}.get(mode or "", mode or "")


def _name(user: str | int | None) -> str:
    return "" if user is None else str(user)


def _healthcheck(asked: schema.HealthcheckSection | None) -> Healthcheck | None:
    if asked is None:
        return None
    start = asked.start_period_sec, asked.start_interval_sec
    return Healthcheck(asked.command, asked.interval_sec, asked.timeout_sec, *start, asked.retries)


def _agent(asked: schema.AgentSection) -> AgentSpec:
    network = _network(asked.network_mode, asked.allowed_hosts)
    return AgentSpec(asked.timeout_sec, _name(asked.user), network, asked.prompt_prefix or "")


def _verifier(asked: schema.VerifierSection, tests: Path) -> VerifierSpec:
    """Return the verifier; a separate environment is built from the folder of the tests."""
    separate = asked.environment or (schema.EnvironmentSection() if asked.environment_mode == "separate" else None)
    return VerifierSpec(
        tests=tests,
        timeout=asked.timeout_sec,
        env=asked.env,
        user=_name(asked.user),
        network=_network(asked.network_mode, asked.allowed_hosts),
        reward_range=(asked.reward_range[0], asked.reward_range[1]),
        place=_place(separate, tests) if separate is not None else None,
        collect=tuple(asked.collect),
        service=asked.service or "",
        pytest_plugins=tuple(asked.pytest_plugins),
    )


def _solution(asked: schema.SolutionSection, folder: Path | None) -> SolutionSpec | None:
    return None if folder is None else SolutionSpec(folder, asked.timeout_sec, asked.env)


def _one_of_several(asked: schema.StepSection, parts: Parts, solution: schema.SolutionSection) -> StepSpec:
    return StepSpec(
        name=asked.name,
        instruction=parts.instruction,
        verifier=_verifier(asked.verifier, parts.tests),
        agent=_agent(asked.agent),
        solution=_solution(solution, parts.solution),
        min_reward=asked.min_reward,
        healthcheck=_healthcheck(asked.healthcheck),
        artifacts=_artifacts(asked.artifacts),
    )


def _artifacts(asked: Sequence[schema.ArtifactSection]) -> tuple[Artifact, ...]:
    return tuple(Artifact(each.source, each.destination, tuple(each.exclude), each.service) for each in asked)
