"""A task as its directory describes it: what the method sees is `Task`, the rest says how it is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from arise.types.rollout import Task
from arise.types.sandbox import BARE, Healthcheck, Place, VerifierJob


@dataclass(frozen=True)
class Artifact:
    """Files of an attempt to keep after it — `Artifact("/app/out", exclude=("*.tmp",))`."""

    source: str
    destination: str = ""
    exclude: tuple[str, ...] = ()
    service: str = ""


@dataclass(frozen=True)
class AgentSpec:
    """How the agent runs — `AgentSpec(timeout=900.0)`; an empty network or user is that of the environment."""

    timeout: float | None = None
    user: str = ""
    network: str = ""
    prompt_prefix: str = ""


@dataclass(frozen=True)
class VerifierSpec:
    """How the tests run — `VerifierSpec(Path("task/tests"), timeout=600.0)`."""

    tests: Path
    timeout: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    network: str = ""
    reward_range: tuple[float, float] = (0.0, 1.0)
    place: Place | None = None
    """The tests' own environment; None if they run in that of the agent."""
    collect: tuple[Mapping[str, object], ...] = ()
    """Commands that bring files from the agent's environment to the tests' own."""
    service: str = ""
    pytest_plugins: tuple[str, ...] = ()
    keep_conftests: bool = False
    """Whether files conftest.py outside the tests must stay in effect."""
    shared: Path | None = None
    """Tests that the steps of a task have in common; those of the step are copied over them."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the tests in the order in which they are copied; one that is missing then is a fault."""
        return (self.tests,) if self.shared is None else (self.shared, self.tests)

    @property
    def script(self) -> Path:
        """Its test.sh, which may be the shared one."""
        found = [path for folder in self.folders if (path := folder / "test.sh").exists()]
        return found[-1] if found else self.tests / "test.sh"


@dataclass(frozen=True)
class SolutionSpec:
    """A solution that passes — `SolutionSpec(Path("task/solution"))`, which holds solve.sh."""

    folder: Path
    timeout: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepSpec:
    """One step of a task with several — `StepSpec("build", "Build it.", VerifierSpec(Path("steps/build/tests")))`."""

    name: str
    instruction: str
    verifier: VerifierSpec
    agent: AgentSpec = AgentSpec()
    solution: SolutionSpec | None = None
    min_reward: float | Mapping[str, float] | None = None
    healthcheck: Healthcheck | None = None
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True)
class TaskSpec:
    """A whole task — `TaskSpec(Task("csv-007", "Clean data.csv ..."), Path("csv-007"), VerifierSpec(tests))`."""

    task: Task
    directory: Path
    verifier: VerifierSpec
    layout: Literal["harbor", "benchflow"] = "harbor"
    environment: Place = BARE
    agent: AgentSpec = AgentSpec()
    solution: SolutionSpec | None = None
    steps: tuple[StepSpec, ...] = ()
    reward_strategy: str = ""
    """How the rewards of several steps are combined: `mean` or `final`."""
    artifacts: tuple[Artifact, ...] = ()
    skills: Path | None = None
    """The folder of the skills that the task provides."""
    skills_dir: str = ""
    """The path at which its environment expects them."""
    mcp_servers: tuple[Mapping[str, object], ...] = ()
    compose_file: Path | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    given: Mapping[str, object] = field(default_factory=dict)
    """The content of its file, as its author wrote it."""

    @property
    def file(self) -> Path:
        """The file that describes it."""
        return self.directory / ("task.toml" if self.layout == "harbor" else "task.md")

    @property
    def place(self) -> Place:
        """What the agent's sandbox must offer."""
        return replace(_as(self.environment, self.agent.user, self.agent.network), directory=self.directory)

    @property
    def verifier_job(self) -> VerifierJob:
        """How its tests are run."""
        own = self.verifier
        place = _as(own.place or self.environment, own.user, own.network)
        kept = tuple(artifact.source for artifact in self.artifacts)
        return VerifierJob(own.folders, own.timeout, own.env, own.user, place, own.place is not None, kept)


def _as(place: Place, user: str, network: str) -> Place:
    return replace(place, user=user or place.user, network=network or place.network)
