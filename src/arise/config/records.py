"""Settings of storage, trackers and sandboxes."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from arise.config.base import Count, Section
from arise.config.imported import Imported


class StorageConfig(Section):
    """How often checkpoints are written; a resume replays the iterations since the last one from stored rollouts.

    `secrets` says whether key-like text in trajectories is redacted before it is stored, or kept.
    """

    checkpoint_every: Count = 1
    keep_checkpoints: Annotated[int, Field(ge=2)] = 2
    keep_every: Annotated[int, Field(ge=0)] = 0
    """Keep checkpoints of iterations that are multiples of this permanently; 0 keeps only the newest ones."""
    secrets: Literal["redact", "keep"] = "redact"


TrackerName = Literal["tensorboard", "wandb", "trackio", "mlflow"]


def _tracker_form(tracker: object) -> str:
    return "name" if isinstance(tracker, str) else "import"


class ImportedTracker(Imported):
    """A custom tracker."""


TrackerChoice = Annotated[
    Annotated[TrackerName, Tag("name")] | Annotated[ImportedTracker, Tag("import")], Discriminator(_tracker_form)
]


class TrackersConfig(Section):
    """Trackers that mirror the metrics of the run; no data leaves this machine unless `online` is set."""

    use: list[TrackerChoice] = Field(default_factory=list)
    """Names, and custom trackers as `{kind = "import", path = "package.module:Class", options = {}}`."""
    project: str = "arise"
    online: bool = False


class SandboxLimits(Section):
    """Settings shared by all kinds of sandboxes."""

    require_limits: bool = False
    """Raise on a machine whose kernel does not enforce every limit of a sandbox."""


class SandboxConfig(SandboxLimits):
    """Sandboxes on this machine."""

    kind: Literal["auto", "bubblewrap", "overlay", "podman", "docker"] = "auto"
    """`auto` uses the lightest kind that meets all needs of a task: bubblewrap, else `overlay` (its image built by a
    container engine and run by bubblewrap), else the container engine itself."""
    pull: Literal["missing", "never", "always"] = "missing"
    """When to pull the images of tasks from a registry."""
    network: Literal["none", "public"] = "public"
    """The network of tasks with an image that do not specify one: `public` as in Harbor and BenchFlow, or `none`."""


class HarborSandboxConfig(SandboxLimits):
    """Environments of Harbor, managed by a separate process; `arise harbor install` installs it."""

    kind: Literal["harbor"] = "harbor"
    environment: str = "docker"
    """An environment of Harbor, such as `docker`, `podman`, `daytona`, `modal`, `e2b` or `gke`, or `module:Class`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further fields of Harbor's `environment` section, such as `kwargs`."""


class ImportedSandbox(SandboxLimits, Imported):
    """Custom sandboxes for the agent's commands."""


SandboxChoice = Annotated[SandboxConfig | HarborSandboxConfig | ImportedSandbox, Field(discriminator="kind")]
