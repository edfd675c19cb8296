"""Assemble one `TaskSpec` from the file and the folders of a task; no setting is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from arise.tasks import schema
from arise.tasks.compose import compose_file, read_compose
from arise.types import (
    AgentSpec,
    Artifact,
    Healthcheck,
    Place,
    SetupCommand,
    SolutionSpec,
    StepSpec,
    Task,
    TaskSpec,
    VerifierSpec,
)
from arise.types.sandbox import COMPOSE_FILE

BUILD_FILES = frozenset({"Dockerfile", ".dockerignore", COMPOSE_FILE})
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
    place = _place(file.environment, environment)
    compose = compose_file(environment, place)
    skills = environment / "skills"
    return TaskSpec(
        task=_task(directory, file, parts.instruction, skills),
        directory=directory,
        verifier=_verifier(file.verifier, parts.tests, file),
        layout=layout,
        environment=place if compose is None else read_compose(compose).added_to(place),
        agent=_agent(file.agent),
        solution=_solution(file.solution, parts.solution),
        steps=tuple(_one_of_several(*each, file, parts.tests) for each in zip(file.steps, steps, strict=True)),
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
        gpu_types=() if asked.gpus == 0 else tuple(asked.gpu_types),
        tpu=f"{asked.tpu.type} {asked.tpu.topology.strip()}" if asked.tpu is not None else "",
        network=_network(asked.network_mode, asked.allowed_hosts, (*asked.blocked_hosts, *asked.blocked_urls)),
        healthcheck=_healthcheck(asked.healthcheck),
        setup=tuple(_setup(each) for each in asked.setup_commands),
    )


def _setup(asked: schema.SetupSection) -> SetupCommand:
    return SetupCommand(asked.command, asked.timeout_sec, asked.cwd or "", asked.env, str(asked.user))


def _network(mode: str | None, hosts: Sequence[str], blocked: Sequence[str] = ()) -> str:
    """Convert a network mode to the notation of `Place`."""
    lists = {"allowlist": f"allow:{','.join(hosts)}", "denylist": f"deny:{','.join(blocked)}", "no-network": "none"}
    return lists.get(mode or "", mode or "")


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


def _verifier(asked: schema.VerifierSection, tests: Path, file: schema.TaskFile) -> VerifierSpec:
    return VerifierSpec(
        tests=tests,
        timeout=asked.timeout_sec,
        env=asked.env,
        user=_name(asked.user),
        network=_network(asked.network_mode, asked.allowed_hosts),
        reward_range=(asked.reward_range[0], asked.reward_range[1]),
        place=_separate((asked,), (tests,), file),
        collect=tuple(asked.collect),
        service="" if asked.service in (None, "main") else asked.service,
        pytest_plugins=tuple(asked.pytest_plugins),
        keep_conftests=not asked.hardening.get("cleanup_conftests", True),
    )


def _separate(asked: Sequence[schema.VerifierSection], tests: Sequence[Path], file: schema.TaskFile) -> Place | None:
    """Return the tests' own environment; None if they run in that of the agent.

    `asked` and `tests` begin with those of a step if the task has steps. The environment is the first one described,
    else a fresh copy of the agent's. Its image is the first one named or with a Dockerfile next to the tests, else that
    of the agent.
    """
    modes = (each.environment_mode or (each.environment and "separate") for each in asked)
    if next(filter(None, modes), "shared") == "shared":
        return None
    section = next((each.environment for each in asked if each.environment is not None), file.environment)
    for verifier, folder in zip(asked, tests, strict=True):
        image = verifier.environment.docker_image if verifier.environment is not None else None
        if image or (folder / "Dockerfile").exists():
            return replace(_place(section, folder), image=image or "")
    return replace(_place(section, tests[0]), image="")


def _inheriting_verifier(
    step: schema.VerifierSection, tests: Path, file: schema.TaskFile, shared: Path
) -> VerifierSpec:
    """Return the verifier of a step; what the step does not say is as the task says, except the time limit."""
    task, own = _verifier(file.verifier, shared, file), _verifier(step, tests, file)
    return replace(
        own,
        env={**task.env, **own.env},
        user=own.user or task.user,
        network=own.network or task.network,
        reward_range=own.reward_range if "reward_range" in step.model_fields_set else task.reward_range,
        place=_separate((step, file.verifier), (tests, shared), file),
        collect=(*task.collect, *own.collect),
        service=own.service or task.service,
        pytest_plugins=(*task.pytest_plugins, *own.pytest_plugins),
        keep_conftests=own.keep_conftests or task.keep_conftests,
        tests=tests if tests.is_dir() else shared,
        shared=shared if tests.is_dir() and shared.is_dir() else None,
    )


def _solution(asked: schema.SolutionSection, folder: Path | None) -> SolutionSpec | None:
    return None if folder is None else SolutionSpec(folder, asked.timeout_sec, asked.env)


def _one_of_several(asked: schema.StepSection, parts: Parts, file: schema.TaskFile, shared: Path) -> StepSpec:
    return StepSpec(
        name=asked.name,
        instruction=parts.instruction,
        verifier=_inheriting_verifier(asked.verifier, parts.tests, file, shared),
        agent=_agent(asked.agent),
        solution=_solution(file.solution, parts.solution),
        min_reward=asked.min_reward,
        healthcheck=_healthcheck(asked.healthcheck),
        artifacts=_artifacts(asked.artifacts),
    )


def _artifacts(asked: Sequence[schema.ArtifactSection]) -> tuple[Artifact, ...]:
    return tuple(Artifact(each.source, each.destination, tuple(each.exclude), each.service) for each in asked)
