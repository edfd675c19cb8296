"""Knobs of what a run keeps, where its numbers are mirrored, and what it asks of the machine."""

from typing import Annotated, Literal

from pydantic import Field

from arise.config.base import Count, Section


class StorageConfig(Section):
    """How often the policy's full state is written; what lies between is replayed from stored rollouts on resume.

    `secrets` says what happens with key-like text in what an agent saw: redacted before it is stored, or kept.
    """

    checkpoint_every: Count = 1
    keep_checkpoints: Annotated[int, Field(ge=2)] = 2
    keep_every: Annotated[int, Field(ge=0)] = 0
    """Checkpoints of iterations that are multiples of this are kept for good; 0: only the newest ones are."""
    secrets: Literal["redact", "keep"] = "redact"


TrackerName = Literal["tensorboard", "wandb", "trackio", "mlflow"]


class TrackersConfig(Section):
    """Mirrors of the run's numbers elsewhere; nothing leaves this machine unless `online` is set."""

    use: list[TrackerName] = Field(default_factory=list)
    project: str = "arise"
    online: bool = False


class SandboxConfig(Section):
    """What a run asks of its sandboxes; with `require_limits` it refuses a machine that cannot enforce them all."""

    kind: Literal["auto", "bubblewrap", "overlay", "podman", "docker"] = "auto"
    """`auto` takes the lightest that gives a task all it asks for: bubblewrap, else `overlay` (its image built by a
    container engine and run by bubblewrap), else the container engine itself."""
    pull: Literal["missing", "never", "always"] = "missing"
    """When images that tasks name are fetched from a registry."""
    network: Literal["none", "public"] = "none"
    """The network of tasks with an image that do not say which they need; Harbor itself gives them the public one."""
    require_limits: bool = False
