"""The forecast of a run: layout, memory, time by part, what would speed it up, tokens, dollars and disk."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from arise.config import Config
from arise.plan.fleet import Schedule, Simulated, simulate
from arise.plan.hardware import Gpu
from arise.plan.layout import Layout, Memory, divide, lora_share, memory_of, tensor_parallel_for
from arise.plan.shapes import ModelShape, shape_of
from arise.plan.speed import Speeds, speeds
from arise.plan.workload import Assumptions, Workload, workload_of

SHARES = (0.25, 0.5, 0.75)
TENSOR_PARALLEL = (1, 2, 4, 8)
GROWTH = 8


@dataclass(frozen=True)
class Faster:
    """What an iteration would take if one part took half as long — the largest gain is the bottleneck."""

    part: str
    seconds: float


@dataclass(frozen=True)
class Forecast:
    """Everything `arise plan` prints about one layout."""

    shape: ModelShape
    work: Workload
    layout: Layout
    memory: tuple[Memory, ...]
    speeds: Speeds
    simulated: Simulated
    faster: tuple[Faster, ...]
    iterations: int
    disk: float
    """Bytes at the end of the run: checkpoints and stored rollouts."""

    @property
    def fits(self) -> bool:
        return all(memory.fits for memory in self.memory)

    @property
    def bottleneck(self) -> str:
        """The part whose speed matters most."""
        return next(faster.part for faster in self.faster if not faster.part.startswith("train."))


def forecast(
    config: Config, layout: Layout, assumed: Assumptions, measured: Callable[[Speeds], Speeds] = lambda s: s
) -> Forecast:
    """Forecast a run on a given layout; `measured` may replace estimated speeds by those of a probe."""
    shape, work = shape_of(config), workload_of(config, assumed)
    trained = lora_share(config, shape)
    rates = measured(speeds(shape, work, layout, assumed))
    schedule = Schedule(layout.servers, config.train.max_staleness, config.pool.update_every)
    simulated = simulate(work, rates, assumed, schedule)
    memory = memory_of(shape, work, layout, assumed, trained)
    return Forecast(
        shape,
        work,
        layout,
        memory,
        rates,
        simulated,
        tuple(_faster(work, rates, assumed, schedule)),
        config.train.iterations,
        disk_bytes(config, shape, work, assumed, trained),
    )


def _faster(work: Workload, rates: Speeds, assumed: Assumptions, schedule: Schedule) -> list[Faster]:
    """Simulate the run with each part twice as fast, and with more staleness."""
    halved = {
        "sampling": (replace(rates, step=rates.step / 2, each=rates.each / 2), assumed),
        "update": (replace(rates, update=rates.update / 2), assumed),
        "tools": (rates, replace(assumed, tool_seconds=assumed.tool_seconds / 2)),
        "judge": (rates, replace(assumed, judge_seconds=assumed.judge_seconds / 2)),
        "equally long rollouts": (rates, replace(assumed, spread=0.0)),
    }
    found = [Faster(part, simulate(work, r, a, schedule).seconds) for part, (r, a) in halved.items()]
    later = replace(schedule, max_staleness=schedule.max_staleness + 1)
    found.append(Faster(f"train.max_staleness = {later.max_staleness}", simulate(work, rates, assumed, later).seconds))
    return sorted(found, key=lambda faster: faster.seconds)


def disk_bytes(config: Config, shape: ModelShape, work: Workload, assumed: Assumptions, trained: float) -> float:
    """Bytes of the run folder at the end: kept checkpoints (weights and moments that train) and all rollouts."""
    storage, iterations = config.storage, config.train.iterations
    kept = storage.keep_checkpoints + (iterations // storage.keep_every if storage.keep_every else 0)
    checkpoint = 12 * shape.parameters * trained
    return kept * checkpoint + iterations * work.rollouts * work.tokens * assumed.bytes_per_token


def best_layout(config: Config, gpu: Gpu, gpus: int, assumed: Assumptions) -> Layout:
    """Return the division of GPUs with the shortest iteration among those that fit, else the one nearest to fitting."""
    shape, work = shape_of(config), workload_of(config, assumed)
    trained = lora_share(config, shape)
    schedule = Schedule(1, config.train.max_staleness, config.pool.update_every, iterations=3)

    def worth(layout: Layout) -> tuple[bool, float]:
        memory = memory_of(shape, work, layout, assumed, trained)
        if not all(part.fits for part in memory):
            return True, max(part.total / part.limit for part in memory)
        rates = speeds(shape, work, layout, assumed)
        return False, simulate(work, rates, assumed, replace(schedule, servers=layout.servers)).seconds

    return min(_candidates(shape, work, gpu, gpus, trained), key=worth)


def _candidates(shape: ModelShape, work: Workload, gpu: Gpu, gpus: int, trained: float) -> list[Layout]:
    least = tensor_parallel_for(shape, work, gpu, max(1, gpus // 2))
    widths = [n for n in TENSOR_PARALLEL if least <= n <= max(1, gpus // 2)]
    return list(
        dict.fromkeys(
            divide(shape, work, gpu, gpus, trained, share, tensor) for share in SHARES for tensor in widths or [least]
        )
    )


@dataclass(frozen=True)
class FleetSize:
    """One row of the sweep."""

    gpus: int
    tasks: int
    staleness: int
    forecast: Forecast

    @property
    def rollouts_per_hour(self) -> float:
        return self.forecast.work.rollouts / self.forecast.simulated.seconds * 3600


def sweep(config: Config, gpu: Gpu, counts: Sequence[int], assumed: Assumptions, grow: bool) -> Iterator[FleetSize]:
    """Yield, for every number of GPUs and every staleness, the forecast of the best layout.

    With `grow`, the batch grows with the fleet, up to GROWTH times: beyond that it would be another training run.
    """
    for gpus in counts:
        factor = min(GROWTH, max(1, gpus // counts[0])) if grow else 1
        tasks = config.train.tasks_per_iteration * factor
        layout = None
        for staleness in (1, 0, 2):
            train = config.train.model_copy(update={"tasks_per_iteration": tasks, "max_staleness": staleness})
            changed = config.model_copy(update={"train": train})
            layout = layout or best_layout(changed, gpu, gpus, assumed)
            yield FleetSize(gpus, tasks, staleness, forecast(changed, layout, assumed))
