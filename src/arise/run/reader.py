"""Read a run from one snapshot, with every query."""

from functools import cached_property

from arise.run.chunks import ChunkPlace, StoredRollout
from arise.run.pool_rows import VerdictCount
from arise.run.queries import RunQueries
from arise.run.rows import GroupSums, Iteration
from arise.run.snapshot import Snapshot


class RunReader(Snapshot, RunQueries):
    """`with RunReader.open(folder) as run: run.iterations()` reads one snapshot of a run.

    A snapshot never changes, so long tables that several facts of a page need are cached.
    """

    def iterations(self) -> list[Iteration]:
        """Return every committed iteration with its metrics."""
        return self._iterations

    def group_sums(self) -> list[GroupSums]:
        """Return the sums of all groups, by iteration."""
        return self._group_sums

    def verdict_counts(self, rubric_id: str | None = None) -> list[VerdictCount]:
        """Return verdict counts by rubric and iteration, with and without the rubric's skill shown."""
        return self._verdict_counts if rubric_id is None else super().verdict_counts(rubric_id)

    @cached_property
    def _iterations(self) -> list[Iteration]:
        return super().iterations()

    @cached_property
    def _group_sums(self) -> list[GroupSums]:
        return super().group_sums()

    @cached_property
    def _verdict_counts(self) -> list[VerdictCount]:
        return super().verdict_counts()

    def _stored(self, place: ChunkPlace) -> StoredRollout:
        with self._readable():
            return super()._stored(place)
