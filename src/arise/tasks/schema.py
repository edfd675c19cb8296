"""task.toml of Harbor (schema 1.x with its legacy keys) and the frontmatter of a BenchFlow task.md, as one model.

Unknown keys are ignored, as Harbor does; known keys with unusable values are problems.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from arise.tasks.problem import TaskProblem
from arise.tasks.variables import Environment

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Network = Literal["public", "no-network", "allowlist"]


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"must be an absolute path, got {path!r}")
    return path


def _below(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"must be a relative path without '..', got {path!r}")
    return path


Absolute = Annotated[str, AfterValidator(_absolute)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(pattern=r"\S")]
User = Annotated[str, Field(pattern=r"^[\w.-]+(:[\w.-]+)?$")] | Annotated[int, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class AboutSection(_Section):
    """Section `[task]`."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x20]+$")]


class _Connected(_Section):
    """A section with a network."""

    network_mode: Network | None = None
    allowed_hosts: list[Annotated[str, Field(pattern=r"^[^\s,]+$")]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _hosts(self) -> Self:
        if self.network_mode == "allowlist" and not self.allowed_hosts:
            raise ValueError("network_mode is 'allowlist', and allowed_hosts names no host")
        if self.network_mode != "allowlist" and self.allowed_hosts:
            raise ValueError("allowed_hosts has an effect with network_mode = 'allowlist' only")
        return self


class _Part(_Connected):
    """Needs of a phase of a task beyond its environment."""

    user: User | None = None


class AgentSection(_Part):
    """Section `[agent]`."""

    timeout_sec: Seconds | None = None
    prompt_prefix: str | None = None


class HealthcheckSection(_Section):
    """Section `[environment.healthcheck]`."""

    command: Text
    interval_sec: Amount = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: Amount = 0.0
    start_interval_sec: Amount = 5.0
    retries: Annotated[int, Field(ge=0)] = 3


class EnvironmentSection(_Connected):
    """Section `[environment]`."""

    os: Literal["linux"] = "linux"
    build_timeout_sec: Seconds = 600.0
    cpus: Amount | None = None
    memory_mb: Amount | None = None
    storage_mb: Amount | None = None
    gpus: Amount | None = None
    docker_image: Annotated[str, Field(pattern=r"^[^\s-]\S*$")] | None = None
    workdir: Absolute | None = None
    user: User | None = None
    env: Environment = Field(default_factory=dict)
    healthcheck: HealthcheckSection | None = None
    mcp_servers: list[dict[str, object]] = Field(default_factory=list)
    skills_dir: Absolute | None = None
    setup_commands: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _legacy(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        found = dict(given)
        if isinstance(found.get("allow_internet"), bool):
            found.setdefault("network_mode", "public" if found["allow_internet"] else "no-network")
        for old in ("memory", "storage"):
            if old in found:
                size = _SIZE.fullmatch(str(found[old]).strip())
                if size is None:
                    raise ValueError(f"{old} must be a size such as '2G', got {found[old]!r}")
                found.setdefault(f"{old}_mb", float(size[1]) * _MIB[size[2].upper()])
        return found


class VerifierSection(_Part):
    """Section `[verifier]`."""

    type: Literal["test-script"] = "test-script"
    timeout_sec: Seconds = 600.0
    env: Environment = Field(default_factory=dict)
    reward_range: Annotated[list[Finite], Field(min_length=2, max_length=2)] = [0.0, 1.0]
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentSection | None = None
    collect: list[dict[str, object]] = Field(default_factory=list)
    service: str | None = None
    pytest_plugins: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _names(cls, given: object) -> object:
        if isinstance(given, dict) and "sandbox_mode" in given:
            return {"environment_mode": given["sandbox_mode"], **given}
        return given

    @field_validator("reward_range")
    @classmethod
    def _rising(cls, bounds: list[float]) -> list[float]:
        if bounds[0] >= bounds[1]:
            raise ValueError(f"the lower bound must come first, got {bounds}")
        return bounds

    @model_validator(mode="after")
    def _one_mode(self) -> Self:
        if self.environment is not None and self.environment_mode == "shared":
            raise ValueError("environment_mode is 'shared', and [verifier.environment] describes a separate one")
        return self


class SolutionSection(_Section):
    """Section `[solution]`."""

    timeout_sec: Seconds = 600.0
    env: Environment = Field(default_factory=dict)


class ArtifactSection(_Section):
    """An entry of `artifacts`."""

    source: Text
    destination: Annotated[str, AfterValidator(_below)] = ""
    exclude: list[str] = Field(default_factory=list)
    service: str = ""


def _artifact(value: object) -> object:
    return {"source": value} if isinstance(value, str) else value


Artifacts = list[Annotated[ArtifactSection, BeforeValidator(_artifact)]]


class StepSection(_Section):
    """Section `[[steps]]`."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    min_reward: Finite | dict[str, Finite] | None = None
    healthcheck: HealthcheckSection | None = None
    artifacts: Artifacts = Field(default_factory=list)


class TaskFile(_Section):
    """A whole task.toml or frontmatter — `TaskFile.model_validate(tomllib.loads(text))`."""

    schema_version: str = "1.0"
    task: AboutSection | None = None
    metadata: dict[str, object] = Field(default_factory=dict)
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    environment: EnvironmentSection = EnvironmentSection()
    solution: SolutionSection = SolutionSection()
    steps: list[StepSection] = Field(default_factory=list)
    multi_step_reward_strategy: Literal["mean", "final"] | None = None
    artifacts: Artifacts = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _names(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        found = dict(given)
        for old, new in (("version", "schema_version"), ("sandbox", "environment"), ("oracle", "solution")):
            if old in found:
                found.setdefault(new, found[old])
        if isinstance(found.get("schema_version"), int | float):
            found["schema_version"] = str(found["schema_version"])
        return found

    @field_validator("schema_version")
    @classmethod
    def _known(cls, version: str) -> str:
        if version.split(".")[0] != "1":
            raise ValueError(f"only schema 1.x can be read, got {version!r}")
        return version

    @field_validator("steps")
    @classmethod
    def _apart(cls, steps: list[StepSection]) -> list[StepSection]:
        names = [step.name for step in steps]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two steps have the name {twice[0]!r}")
        return steps

    @field_validator("metadata")
    @classmethod
    def _domain(cls, metadata: dict[str, object]) -> dict[str, object]:
        if not isinstance(metadata.get("category", ""), str):
            raise ValueError(f"category must be text, got {metadata['category']!r}")
        return metadata

    @property
    def task_types(self) -> object:
        """Return the unchecked task types of [metadata], in either spelling."""
        nested = self.metadata.get("arise")
        if isinstance(nested, dict) and "task_types" in nested:
            return nested["task_types"]
        return self.metadata.get("arise.task_types", self.metadata.get("task_types", []))


def check_task_file(given: object, path: Path) -> TaskFile | list[TaskProblem]:
    """Return the validated model, or one problem for each invalid value."""
    try:
        return TaskFile.model_validate(given)
    except ValidationError as error:
        return [
            TaskProblem(
                path,
                f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg'].removeprefix('Value error, ')}",
                "correct this value, or remove the key to use its default",
            )
            for fault in error.errors(include_url=False)
        ]
