"""Stable column numbers for the active rubrics, so that per-rubric arrays need no copying when the pool changes."""

from collections.abc import Iterable, Sequence


class Columns:
    """rubric id -> column; a rubric keeps its column until it leaves the pool; freed columns are reused."""

    def __init__(self) -> None:
        self._column_of: dict[str, int] = {}
        self._free: list[int] = []
        self.width = 0

    def __contains__(self, rubric_id: str) -> bool:
        return rubric_id in self._column_of

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._column_of)

    def of(self, rubric_ids: Iterable[str]) -> list[int]:
        """Return the columns of `rubric_ids`; an id that is not active is an error."""
        try:
            return [self._column_of[rubric_id] for rubric_id in rubric_ids]
        except KeyError as missing:
            known = ", ".join(self._column_of) or "none"
            raise ValueError(f"rubric {missing.args[0]!r} is not active (active: {known})") from None

    def keep_only(self, rubric_ids: Sequence[str]) -> list[int]:
        """Assign columns to new rubrics and return the freed columns, which the owner must clear."""
        keep = set(rubric_ids)
        freed = [self._column_of.pop(rubric_id) for rubric_id in self.ids if rubric_id not in keep]
        self._free = sorted(self._free + freed)
        for rubric_id in rubric_ids:
            if rubric_id not in self._column_of:
                if not self._free:
                    self._free.append(self.width)
                    self.width += 1
                self._column_of[rubric_id] = self._free.pop(0)
        return freed
