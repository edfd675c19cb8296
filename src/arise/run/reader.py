"""A run, read-only: one snapshot with every query."""

from arise.run.chunks import Place, StoredRollout
from arise.run.queries import RunQueries
from arise.run.snapshot import Snapshot


class RunReader(Snapshot, RunQueries):
    """`with RunReader.open(folder) as run: run.iterations()` reads one snapshot of a run."""

    def _stored(self, place: Place) -> StoredRollout:
        with self._readable():
            return super()._stored(place)
