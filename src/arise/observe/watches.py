"""The watches of a run as one: the display, the store's record of what an iteration cost, and the trackers."""

import resource
from collections.abc import Sequence

from arise.observe.terminal import Display
from arise.observe.trackers import Mirrors
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.state import State
from arise.types import Group, StepStats


class Observers:
    """Passes everything on to the display; what it adds can slow a run by a write, and never stop it."""

    def __init__(self, display: Display, store: RunStore, mirrors: Mirrors) -> None:
        self.display, self._store, self._mirrors = display, store, mirrors

    def part(self, name: str) -> None:
        """The loop goes on to another part of its work."""
        self.display.part(name)

    def metrics(self, groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]:
        """The numbers of an iteration that its record keeps."""
        return self.display.metrics(groups, update, state, version)

    def finished(self, record: IterationRecord) -> None:
        """Show the committed iteration, keep its cost, mirror it."""
        self.display.finished(record)
        vitals = {f"seconds.{name}": seconds for name, seconds in self.display.last_seconds.items()}
        vitals["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        vitals |= self.display.trust.costs() if self.display.trust else {}
        self._store.save_vitals(record.k, vitals)
        self._mirrors.log(record.iteration, {**record.metrics, **vitals})
