"""Types of a fleet: where its servers come from, and the result of a turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arise.engines.remote.processes import Process


@dataclass(frozen=True)
class FleetSpec:
    """Where servers come from: started here, or given by address."""

    start: Callable[[int, str], tuple[Process, str]] | None
    """Start server `number` with the weights of a folder; returns its process and address."""
    count: int
    addresses: Sequence[str]
    end_ids: frozenset[int]
    window: int
    start_seconds: float = 900.0
    request_seconds: float = 3600.0
    lost_seconds: float = 300.0
    """Seconds without an answer after which a server given by address is lost."""
    first_seconds: float = 10.0
    """The same at the start of a run."""
    watch_seconds: float = 60.0
    """How often a server is asked for its health while it works on a request."""
    health_seconds: float = 30.0
    """How long that answer may take."""
    key: str = ""
    release: str = ""
    """The release of vLLM that servers given by address must have; empty: any."""
    base: str = ""
    """The model that every server holds where only adapters are trained; empty: servers load all weights."""


@dataclass(frozen=True)
class SampledTurn:
    """A complete sampled turn, which may span versions; `finish` as in `Segment`."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    finish: str
