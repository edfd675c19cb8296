"""Accelerators as data: the published numbers that decide memory and speed."""

from dataclasses import dataclass

from arise.errors import AriseError, Exit

GB = 1e9


@dataclass(frozen=True)
class Gpu:
    """One accelerator: memory in bytes, dense BF16 operations per second, memory and network bytes per second.

    `link` is the bandwidth per GPU to its neighbours in a node, `network` to other nodes.
    """

    name: str
    memory: float
    flops: float
    bandwidth: float
    link: float
    network: float = 50 * GB


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("a100-40", 40 * GB, 312e12, 1555 * GB, 300 * GB, 25 * GB),
        Gpu("a100-80", 80 * GB, 312e12, 2039 * GB, 300 * GB, 25 * GB),
        Gpu("b200", 192 * GB, 2250e12, 8000 * GB, 900 * GB),
        Gpu("h100", 80 * GB, 989e12, 3350 * GB, 450 * GB),
        Gpu("h200", 141 * GB, 989e12, 4800 * GB, 450 * GB),
        Gpu("h20", 96 * GB, 148e12, 4000 * GB, 450 * GB),
        Gpu("h800", 80 * GB, 989e12, 3350 * GB, 200 * GB),
        Gpu("l40s", 48 * GB, 362e12, 864 * GB, 32 * GB, 12.5 * GB),
        Gpu("rtx4090", 24 * GB, 165e12, 1008 * GB, 16 * GB, 12.5 * GB),
    )
}
"""Published peak numbers of the vendors, without sparsity."""


CPU_FLOPS = 100e9
CPU_BANDWIDTH = 20 * GB
"""Of two laptop cores, roughly; a probe measures what matters."""


def gpu_named(name: str) -> Gpu:
    """Return an accelerator by its name."""
    if name not in GPUS:
        raise AriseError(
            "plan",
            Exit.CONFIG,
            f"unknown GPU {name!r}",
            "nothing was planned",
            f"give --gpu one of: {', '.join(sorted(GPUS))}",
        )
    return GPUS[name]
