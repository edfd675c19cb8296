"""Rates of a layout, from published peaks: seconds per decoding step, per update and per weight transfer."""

from dataclasses import dataclass

from arise.plan.layout import Layout, resident
from arise.plan.shapes import ModelShape
from arise.plan.workload import Assumptions, Workload

RECOMPUTED = 8
"""Operations per parameter and token in training with recomputed layers: forward twice, backward once."""


@dataclass(frozen=True)
class Speeds:
    """What the simulation needs: a decoding step takes `step + each * conversations` seconds on one server."""

    step: float
    each: float
    most: int
    """Conversations that one server decodes at a time."""
    update: float
    """Seconds of one update."""
    publish: float
    """Seconds until the servers sample from the new weights."""


def speeds(shape: ModelShape, work: Workload, layout: Layout, assumed: Assumptions) -> Speeds:
    """Estimate the rates from published peaks.

    A decoding step reads the weights once and the cache of every conversation; each generated token also pays for the
    tokens of the tool output before it, which are read once.
    """
    gpu, tensor = layout.gpu, layout.tensor_parallel
    bandwidth = gpu.bandwidth * assumed.bandwidth_efficiency * tensor
    mean_context = work.prompt + (work.generated + work.observed) / 2
    arithmetic = 2 * shape.active / (gpu.flops * assumed.prefill_efficiency * tensor)
    step = assumed.decode_overhead + 2 * shape.parameters / bandwidth
    each = shape.cache_bytes * mean_context / bandwidth + arithmetic * (1 + work.read_per_generated)
    return Speeds(
        step=step,
        each=each,
        most=resident(shape, work, layout, assumed),
        update=assumed.update_overhead + training_seconds(shape, work, layout, assumed),
        publish=2 * shape.parameters / min(gpu.network * max(1, layout.trainers), gpu.link * tensor) + 2.0,
    )


def training_seconds(shape: ModelShape, work: Workload, layout: Layout, assumed: Assumptions) -> float:
    """Arithmetic of one update over all rows: weights and attention, forward and backward, layers recomputed."""
    tokens = work.rollouts * work.tokens
    attention = 2 * shape.caching_layers * shape.heads * shape.head_size * work.tokens / 2
    operations = RECOMPUTED * tokens * (shape.active + attention)
    return operations / (layout.trainers * layout.gpu.flops * assumed.train_efficiency)
