"""The observers of a run as one object: display, recorded costs, trackers."""

import resource
from collections.abc import Sequence

from arise.observe.terminal import Display
from arise.observe.trackers import Mirrors
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.state import State
from arise.types import Group, StepStats


class Observers:
    """Forward events to the display, save the costs of an iteration, and mirror its metrics."""

    def __init__(self, display: Display, store: RunStore, mirrors: Mirrors) -> None:
        self.display, self._store, self._mirrors = display, store, mirrors

    def part(self, name: str) -> None:
        """Start timing the next part of the iteration."""
        self.display.part(name)

    def metrics(self, groups: Sequence[Group], update: StepStats, state: State, version: int) -> dict[str, float]:
        """Return the metrics that the record of an iteration keeps."""
        return self.display.metrics(groups, update, state, version)

    def finished(self, record: IterationRecord) -> None:
        """Show the committed iteration, save its costs and mirror it."""
        self.display.finished(record)
        vitals = {f"seconds.{name}": seconds for name, seconds in self.display.last_seconds.items()}
        vitals["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        vitals |= self.display.judge_monitor.costs() if self.display.judge_monitor else {}
        self._store.save_vitals(record.k, vitals)
        self._mirrors.log(record.iteration, {**record.metrics, **vitals})
