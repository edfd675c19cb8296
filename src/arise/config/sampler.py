"""Settings of the task samplers."""

from typing import Annotated, Literal

from pydantic import Field

from arise.config.base import Count, Fraction, Section
from arise.config.imported import Imported


class TaskSampling(Section):
    """Settings shared by all samplers: when to set aside a task whose groups are incomplete because of faults."""

    set_aside_after: Annotated[int, Field(ge=0)] = 3
    """Consecutive incomplete groups after which a task is set aside; 0 means never."""
    retry_every: Count = 20
    """Iterations after which a task that was set aside may be drawn again."""


class CapabilitySampling(TaskSampling):
    """ARISE's sampler: discovery while coverage is low, then weak (task type, capability) cells."""

    kind: Literal["capability"] = "capability"
    min_discovery: Fraction = 0.1
    quota_fraction: Fraction = 0.25
    observed_decay: Fraction = 0.2
    unobserved_decay: Fraction = 0.999


class UniformSampling(TaskSampling):
    """Every task once per epoch, in shuffled order."""

    kind: Literal["uniform"] = "uniform"


class VadeSampling(TaskSampling):
    """VADE: the B tasks with the most informative sampled success probability, estimated from verified outcomes."""

    kind: Literal["vade"] = "vade"
    observed_decay: Fraction = 0.2
    unobserved_decay: Fraction = 0.999


class ImportedSampler(TaskSampling, Imported):
    """A custom sampler; its state is saved with every commit and restored on resume."""
