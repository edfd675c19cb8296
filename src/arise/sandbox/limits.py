"""Resource limits of one sandbox, enforced by the kernel rather than by the command."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Limits of one sandbox — `Limits(memory_bytes=256 * MIB)`; files are in memory and count towards its limit."""

    memory_bytes: int = 512 * MIB
    processes: int = 128
    output_bytes: int = MIB
    disk_bytes: int = 128 * MIB
    """The working directory, and each further writable folder."""
    tmp_bytes: int = 64 * MIB
    open_files: int = 1024
    cpus: float | None = None
    """The most processor time per second; None for no limit besides an equal share."""
    in_memory: bool = True
    """Whether writable files are held in memory."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in ("cpus", "in_memory") and value < 1:
                raise ValueError(f"Limits.{name} must be at least 1, got {value}")
        if self.cpus is not None and self.cpus <= 0:
            raise ValueError(f"Limits.cpus must be above 0, got {self.cpus}")
        if self.in_memory and self.disk_bytes + self.tmp_bytes > self.memory_bytes:
            raise ValueError(
                f"Limits: disk_bytes ({self.disk_bytes}) and tmp_bytes ({self.tmp_bytes}) are held in memory and "
                f"together must not exceed memory_bytes ({self.memory_bytes})"
            )
        if self.output_bytes >= 2**31:
            raise ValueError(f"Limits.output_bytes must be below 2 GiB, got {self.output_bytes}")
