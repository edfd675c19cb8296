"""How GPUs are divided: servers that sample and workers that train, and whether each part fits into memory."""

from dataclasses import dataclass, replace

from arise.config import Config
from arise.config.schema import PretrainedModel
from arise.plan.hardware import GB, Gpu
from arise.plan.shapes import ModelShape
from arise.plan.workload import Assumptions, Workload

RUNTIME = 4 * GB
"""Memory of a process besides its tensors: kernels, communication buffers, fragmentation."""
CHUNK = 2048
"""Positions whose logits exist at a time."""
LAYER_BYTES = 34
"""Bytes per token and hidden unit inside one recomputed layer, in 16 bits."""


@dataclass(frozen=True)
class Layout:
    """`servers` sample, each on `tensor_parallel` GPUs; `trainers` GPUs train, `context_parallel` of them per row."""

    gpu: Gpu
    servers: int
    tensor_parallel: int
    trainers: int
    context_parallel: int = 1
    shared_cache: float = 0.0
    """Bytes of the cache if one device samples and trains in turn, as the built-in engine does; else 0."""

    @property
    def gpus(self) -> int:
        return 1 if self.shared_cache else self.servers * self.tensor_parallel + self.trainers


@dataclass(frozen=True)
class Memory:
    """Bytes per GPU by part, of one of the two roles."""

    role: str
    parts: tuple[tuple[str, float], ...]
    limit: float

    @property
    def total(self) -> float:
        return sum(size for _, size in self.parts)

    @property
    def fits(self) -> bool:
        return self.total <= self.limit


def lora_share(config: Config, shape: ModelShape) -> float:
    """Share of the parameters that train: 1 in full training, the adapters' with LoRA."""
    rank = config.model.lora_rank if isinstance(config.model, PretrainedModel) else 0
    if not rank:
        return 1.0
    sides = (
        4 * shape.hidden
        + 2 * shape.head_size * (shape.heads + shape.kv_heads)
        + 3 * (shape.hidden + shape.feed_forward)
    )
    return min(1.0, rank * shape.layers * sides / shape.parameters)


def training_memory(shape: ModelShape, work: Workload, layout: Layout, trained: float) -> Memory:
    """Memory of a training GPU: fully sharded parameters, one row of full length at a time, layers recomputed."""
    shard = shape.parameters / layout.trainers
    row = work.longest / layout.context_parallel
    weights = 2 * shard if trained < 1 else 4 * shard
    return Memory(
        "training",
        (
            ("weights", weights),
            ("gradients", 4 * trained * shard),
            ("optimizer", 8 * trained * shard),
            ("gathered layers", 2 * 2 * (shape.parameters / shape.layers)),
            ("activations", row * shape.hidden * (2 * shape.layers + LAYER_BYTES)),
            ("logits", min(row, CHUNK) * shape.vocabulary * 8),
            ("runtime", RUNTIME),
        ),
        layout.gpu.memory,
    )


def sampling_memory(shape: ModelShape, work: Workload, layout: Layout, assumed: Assumptions) -> Memory:
    """Memory of a sampling GPU with the conversations of its server at their mean length, or as many as fit."""
    each = shape.cache_bytes * work.tokens / layout.tensor_parallel
    weights = 2 * shape.parameters / layout.tensor_parallel
    room = max(0.0, assumed.cache_share * layout.gpu.memory - weights)
    wanted = each * work.rollouts / layout.servers
    longest = shape.cache_bytes * work.longest / layout.tensor_parallel
    return Memory(
        "sampling",
        (("weights", weights), ("cache", max(longest, min(wanted, room)))),
        assumed.cache_share * layout.gpu.memory,
    )


def memory_of(
    shape: ModelShape, work: Workload, layout: Layout, assumed: Assumptions, trained: float
) -> tuple[Memory, ...]:
    """Return the memory of every role of a layout."""
    training = training_memory(shape, work, layout, trained)
    if not layout.shared_cache:
        return training, sampling_memory(shape, work, layout, assumed)
    return (Memory("", (*training.parts, ("cache", layout.shared_cache)), training.limit),)


def resident(shape: ModelShape, work: Workload, layout: Layout, assumed: Assumptions) -> int:
    """Return how many conversations of mean length one server holds at a time."""
    room = assumed.cache_share * layout.gpu.memory * layout.tensor_parallel - 2 * shape.parameters
    room = layout.shared_cache or room
    return max(1, int(room / (shape.cache_bytes * work.tokens)))


def tensor_parallel_for(shape: ModelShape, work: Workload, gpu: Gpu, most: int = 8) -> int:
    """Return the fewest GPUs per server that hold the weights and one conversation of full length."""
    needed = 2 * shape.parameters + shape.cache_bytes * work.longest
    return next((n for n in (1, 2, 4, 8) if n <= most and needed <= 0.8 * gpu.memory * n), most)


def divide(
    shape: ModelShape,
    work: Workload,
    gpu: Gpu,
    gpus: int,
    trained: float,
    sampling: float = 0.5,
    tensor: int | None = None,
) -> Layout:
    """Divide GPUs: about `sampling` of them to servers, the rest to training, with the least context parallelism.

    A single GPU does both in turn, so it counts as one server and one trainer.
    """
    tensor = tensor or tensor_parallel_for(shape, work, gpu, max(1, gpus // 2))
    servers = max(1, round(gpus * sampling / tensor))
    while servers > 1 and gpus - servers * tensor < 1:
        servers -= 1
    trainers = max(1, gpus - servers * tensor)
    layout = Layout(gpu, servers, tensor, trainers)
    while not training_memory(shape, work, layout, trained).fits and 2 * layout.context_parallel <= trainers:
        layout = replace(layout, context_parallel=2 * layout.context_parallel)
    return layout
