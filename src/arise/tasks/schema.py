"""task.toml of Harbor (schema 1.x with its legacy keys) and the frontmatter of a BenchFlow task.md, as one model.

Unknown keys are ignored, as Harbor does; known keys with unusable values are problems.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from arise.tasks.problem import TaskProblem
from arise.tasks.schema_values import (
    BENCHFLOW_FILE,
    Absolute,
    Amount,
    Below,
    Connected,
    Finite,
    Host,
    Phase,
    Seconds,
    TaskTable,
    Text,
    User,
    mebibytes,
)
from arise.tasks.variables import VARIABLE_NAME, Environment


class AboutSection(TaskTable):
    """Section `[task]`."""

    name: Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x20]+$")]


class AgentSection(Phase):
    """Section `[agent]`."""

    timeout_sec: Seconds | None = None
    prompt_prefix: str | None = None


class HealthcheckSection(TaskTable):
    """Section `[environment.healthcheck]`."""

    command: Text
    interval_sec: Amount = 5.0
    timeout_sec: Seconds = 30.0
    start_period_sec: Amount = 0.0
    start_interval_sec: Amount = 5.0
    retries: Annotated[int, Field(ge=0)] = 3


class SetupSection(TaskTable):
    """An entry of `setup_commands`; a plain text is the command alone."""

    model_config = ConfigDict(extra="forbid")
    command: Text
    timeout_sec: Seconds = 600.0
    cwd: Absolute | None = None
    env: Environment = Field(default_factory=dict)
    user: User = "root"
    service: Literal["main"] = "main"


class TpuSection(TaskTable):
    """Section `[environment.tpu]`."""

    type: Text
    topology: Annotated[str, Field(pattern=r"^\s*[1-9]\d*(x[1-9]\d*)+\s*$")]


def _command(value: object) -> object:
    return {"command": value} if isinstance(value, str) else value


class EnvironmentSection(Connected):
    """Section `[environment]`."""

    blocked_hosts: list[Host] = Field(default_factory=list)
    blocked_urls: list[Host] = Field(default_factory=list)
    os: Annotated[Literal["linux"], BeforeValidator(lambda name: name.lower() if isinstance(name, str) else name)] = (
        "linux"
    )
    build_timeout_sec: Seconds = 600.0
    cpus: Amount | None = None
    memory_mb: Amount | None = None
    storage_mb: Amount | None = None
    gpus: Amount | None = None
    gpu_types: list[Text] = Field(default_factory=list)
    tpu: TpuSection | None = None
    docker_image: Annotated[str, Field(pattern=r"^[^\s-]\S*$")] | None = None
    workdir: Absolute | None = None
    user: User | None = None
    env: Environment = Field(default_factory=dict)
    healthcheck: HealthcheckSection | None = None
    mcp_servers: list[dict[str, object]] = Field(default_factory=list)
    skills_dir: Absolute | None = None
    setup_commands: list[Annotated[SetupSection, BeforeValidator(_command)]] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _legacy(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        found = dict(given)
        if "image" in found:
            found.setdefault("docker_image", found["image"])
        if isinstance(found.get("allow_internet"), bool):
            found.setdefault("network_mode", "public" if found["allow_internet"] else "no-network")
        for old in ("memory", "storage"):
            if old in found:
                size = mebibytes(old, found[old])
                if found.setdefault(f"{old}_mb", size) != size:
                    raise ValueError(f"{old} is {found[old]!r} and {old}_mb is {found[f'{old}_mb']!r}: give one")
        return found

    @model_validator(mode="after")
    def _blocked(self) -> Self:
        if (self.network_mode == "denylist") != bool(self.blocked_hosts or self.blocked_urls):
            raise ValueError("network_mode = 'denylist' and blocked_hosts or blocked_urls belong together")
        return self


class VerifierSection(Phase):
    """Section `[verifier]`."""

    type: Literal["test-script"] = "test-script"
    timeout_sec: Seconds = 600.0
    env: Environment = Field(default_factory=dict)
    reward_range: Annotated[list[Finite], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [0.0, 1.0])
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentSection | None = None
    collect: list[dict[str, object]] = Field(default_factory=list)
    service: str | None = None
    pytest_plugins: list[str] = Field(default_factory=list)
    hardening: dict[str, bool] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _names(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        found = dict(given)
        for old, new in (("sandbox_mode", "environment_mode"), ("sandbox", "environment")):
            if old in found and new in found:
                raise ValueError(f"{old} and {new} are the same key: keep one")
            if old in found:
                found[new] = found[old]
        return found

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


class SolutionSection(TaskTable):
    """Section `[solution]`."""

    timeout_sec: Seconds = 600.0
    env: Environment = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _inline(cls, given: object) -> object:
        """Accept variables set directly in the section, as in old tasks of SkillsBench."""
        if not isinstance(given, Mapping):
            return given
        inline = {
            name: value
            for name, value in given.items()
            if isinstance(value, str) and name not in cls.model_fields and VARIABLE_NAME.fullmatch(str(name))
        }
        return {**given, "env": {**inline, **given.get("env", {})}} if inline else given


class ArtifactSection(TaskTable):
    """An entry of `artifacts`."""

    source: Text
    destination: Below = ""
    exclude: list[str] = Field(default_factory=list)
    service: str = ""


def _artifact(value: object) -> object:
    return {"source": value} if isinstance(value, str) else value


Artifacts = list[Annotated[ArtifactSection, BeforeValidator(_artifact)]]


class StepSection(TaskTable):
    """Section `[[steps]]`."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    agent: AgentSection = AgentSection()
    verifier: VerifierSection = VerifierSection()
    min_reward: Finite | dict[str, Finite] | None = None
    healthcheck: HealthcheckSection | None = None
    artifacts: Artifacts = Field(default_factory=list)


class TaskFile(TaskTable):
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
            if old in found and new in found:
                raise ValueError(f"{old} and {new} are the same section: keep one")
            if old in found:
                found[new] = found[old]
        if isinstance(found.get("schema_version"), int | float):
            found["schema_version"] = str(found["schema_version"])
        if isinstance(name := found.get("name"), str):
            found.setdefault("task", {"name": name if "/" in name else f"benchflow/{name}"})
        if "image" in found:
            found["environment"] = {"docker_image": found["image"], **(found.get("environment") or {})}
        return found

    @field_validator("schema_version")
    @classmethod
    def _known(cls, version: str, info: ValidationInfo) -> str:
        if info.context == BENCHFLOW_FILE and version.split(".")[0] != "1":
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
    """Return the validated model, or one problem for each invalid value; as in Harbor, any schema of a task.toml."""
    try:
        return TaskFile.model_validate(given, context=path.name)
    except ValidationError as error:
        return [
            TaskProblem(
                path,
                f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg'].removeprefix('Value error, ')}",
                "correct this value, or remove the key to use its default",
            )
            for fault in error.errors(include_url=False)
        ]
