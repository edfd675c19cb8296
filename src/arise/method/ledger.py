"""Success and failure mass per (task type, rubric), decayed by policy version (App. "Evidence Maintenance")."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arise.method.arrays import Floats, fraction, unique, verdicts
from arise.method.columns import Columns
from arise.types import Capability, Pool

FORMAT = 1
CAPABILITIES = tuple(Capability)
_INDEX = {capability: c for c, capability in enumerate(CAPABILITIES)}
_ORDER = np.arange(len(CAPABILITIES))
_NEVER = -1


def contributions(verdict_IJ: ArrayLike, capability_I: Sequence[Capability]) -> tuple[Floats, Floats]:
    """Eqs. 9, 10 — each verdict's share 1 / |R_c(tau_j)| of u_c and 1 - u_c, summed over the group's trajectories.

    Several groups at once are an array with one more dimension in front.
    """
    verdict_IJ = verdicts("verdict_IJ", verdict_IJ, dimensions=max(2, np.ndim(verdict_IJ)))
    if len(capability_I) != verdict_IJ.shape[-2]:
        raise ValueError(f"verdict_IJ has {verdict_IJ.shape[-2]} rubrics, but capability_I names {len(capability_I)}")
    applicable_IJ = (verdict_IJ == verdict_IJ).astype(np.float64)
    index_I = np.array([_INDEX.get(capability, _NEVER) for capability in capability_I], dtype=np.intp)
    if _NEVER in index_I:
        raise ValueError(
            f"capability_I = {list(capability_I)} must name capabilities of Table 3: {', '.join(CAPABILITIES)}"
        )
    member_CI = (_ORDER[:, None] == index_I).astype(np.float64)
    peers_IJ = (member_CI @ applicable_IJ)[..., index_I, :]
    share_IJ = applicable_IJ / np.maximum(peers_IJ, 1.0)
    passed_IJ = verdict_IJ == 1.0
    return (share_IJ * passed_IJ).sum(axis=-1), (share_IJ * ~passed_IJ).sum(axis=-1)


class Ledger:
    """S_{d,i} and F_{d,i}; `observe` adds and decays, `cell` reads S_{d,c}, F_{d,c}, `keep_only` follows the pool."""

    def __init__(self, observed_decay: float = 0.2, unobserved_decay: float = 0.999) -> None:
        self.observed_decay = fraction("observed_decay", observed_decay)
        self.unobserved_decay = fraction("unobserved_decay", unobserved_decay)
        self._columns = Columns()
        self._capability_of: dict[str, Capability] = {}
        self._row_of: dict[str, int] = {}
        self._passes_DI = np.zeros((0, 0))
        self._fails_DI = np.zeros((0, 0))
        self._version_DI = np.full((0, 0), _NEVER)

    @property
    def task_types(self) -> tuple[str, ...]:
        """Every task type seen so far, in the row order of `cells`."""
        return tuple(self._row_of)

    def keep_only(self, pool: Pool) -> None:
        """Drop the mass of retired rubrics and add columns for new ones; the rest is not renormalised."""
        self._set_rubrics({rubric.id: rubric.capability for rubric in pool.rubrics})

    def observe(
        self, task_types: Sequence[str], rubric_ids: Sequence[str], verdict_IJ: ArrayLike, version: int
    ) -> None:
        """Eq. 20 — decay what is stored, then add a complete group's contributions in full to every tag of its task."""
        self.observe_groups([task_types], rubric_ids, verdicts("verdict_IJ", verdict_IJ)[None], version)

    def observe_groups(
        self, types_G: Sequence[Sequence[str]], rubric_ids: Sequence[str], verdict_GIJ: ArrayLike, version: int
    ) -> None:
        """`observe` for groups that arrive together: decayed once, then all their contributions added."""
        if version < 0:
            raise ValueError(f"version = {version} must not be negative")
        columns = self._columns.of(unique("rubric_ids", rubric_ids))
        new_pass_GI, new_fail_GI = contributions(verdict_GIJ, [self._capability_of[i] for i in rubric_ids])
        if len(types_G) != len(new_pass_GI):
            raise ValueError(f"types_G names {len(types_G)} groups, but verdict_GIJ has {len(new_pass_GI)}")
        types_G = [unique("task_types", types) for types in types_G]
        row_of = {task_type: self._row(task_type) for types in types_G for task_type in types}
        tagged_DG = np.array([[task_type in types for types in types_G] for task_type in row_of], dtype=np.float64)
        if not tagged_DG.size:
            return
        place = np.ix_(list(row_of.values()), columns)
        # A rubric that applied to no trajectory was not observed, so its evidence does not decay.
        observed_DI = tagged_DG @ (new_pass_GI + new_fail_GI) > 0.0
        factor_DI = np.where(observed_DI, self._factor(self._version_DI[place], version, observing=True), 1.0)
        self._passes_DI[place] = self._passes_DI[place] * factor_DI + tagged_DG @ new_pass_GI
        self._fails_DI[place] = self._fails_DI[place] * factor_DI + tagged_DG @ new_fail_GI
        self._version_DI[place] = np.where(observed_DI, version, self._version_DI[place])

    def cell(self, task_type: str, capability: Capability, version: int) -> tuple[float, float]:
        """S_{d,c} and F_{d,c} as they count at `version`; reading changes nothing, and no evidence is (0, 0)."""
        if task_type not in self._row_of:
            return 0.0, 0.0
        passes_DC, fails_DC = self.cells(version)
        place = self._row_of[task_type], _INDEX[Capability(capability)]
        return float(passes_DC[place]), float(fails_DC[place])

    def cells(self, version: int) -> tuple[Floats, Floats]:
        """S and F of every (task type, capability) at `version`, rows as in `task_types`, columns as in Table 3."""
        factor_DI = self._factor(self._version_DI, version, observing=False)
        passes_DI, fails_DI = self._passes_DI * factor_DI, self._fails_DI * factor_DI
        passes_DC, fails_DC = (np.zeros((len(self._row_of), len(CAPABILITIES))) for _ in range(2))
        # In the pool's order, whatever column a rubric sits in: a restored ledger must add in the same order.
        for rubric_id, n in zip(self._columns.ids, self._columns.of(self._columns.ids), strict=True):
            c = _INDEX[self._capability_of[rubric_id]]
            passes_DC[:, c] += passes_DI[:, n]
            fails_DC[:, c] += fails_DI[:, n]
        return passes_DC, fails_DC

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON values; floats round-trip exactly."""
        columns = dict(zip(self._columns.ids, self._columns.of(self._columns.ids), strict=True))
        tallies = [
            [task_type, i, self._passes_DI[d, n].item(), self._fails_DI[d, n].item(), self._version_DI[d, n].item()]
            for task_type, d in self._row_of.items()
            for i, n in columns.items()
            if self._version_DI[d, n] != _NEVER
        ]
        return {
            "format": FORMAT,
            "observed_decay": self.observed_decay,
            "unobserved_decay": self.unobserved_decay,
            "task_types": list(self._row_of),
            "rubrics": [[i, self._capability_of[i].value] for i in columns],
            "tallies": tallies,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild a ledger from `to_dict`; raise on another format version."""
        require_format("ledger", saved, FORMAT)
        ledger = cls(saved["observed_decay"], saved["unobserved_decay"])
        ledger._set_rubrics({i: Capability(capability) for i, capability in saved["rubrics"]})
        for task_type in saved["task_types"]:
            ledger._row(task_type)
        for task_type, rubric_id, passes, fails, version in saved["tallies"]:
            if passes < 0 or fails < 0 or version < 0:
                raise ValueError(
                    f"ledger state: negative entry for ({task_type!r}, {rubric_id!r}): {passes}, {fails}, {version}"
                )
            place = ledger._row(task_type), ledger._columns.of([rubric_id])[0]
            ledger._passes_DI[place], ledger._fails_DI[place], ledger._version_DI[place] = passes, fails, version
        return ledger

    def _factor(self, last: NDArray[np.int64], version: int, *, observing: bool) -> Floats:
        """Return the decay of entries last updated at `last`: 1 within a version, and for entries never observed."""
        elapsed = np.where(last == _NEVER, 0, version - last)
        if (elapsed < 0).any():
            raise ValueError(
                f"version = {version} is older than evidence of version {int(last.max())}: versions only grow"
            )
        if observing:
            return np.where(
                elapsed == 0, 1.0, self.observed_decay * self.unobserved_decay ** np.maximum(elapsed - 1, 0)
            )
        return self.unobserved_decay ** elapsed.astype(np.float64)

    def _row(self, task_type: str) -> int:
        row = self._row_of.setdefault(task_type, len(self._row_of))
        self._fit(len(self._row_of), self._columns.width)
        return row

    def _set_rubrics(self, capability_of: Mapping[str, Capability]) -> None:
        freed = self._columns.keep_only(tuple(capability_of))
        self._passes_DI[:, freed], self._fails_DI[:, freed], self._version_DI[:, freed] = 0.0, 0.0, _NEVER
        self._capability_of = dict(capability_of)
        self._fit(len(self._row_of), self._columns.width)

    def _fit(self, rows: int, width: int) -> None:
        grow = max(0, rows - len(self._passes_DI)), max(0, width - self._passes_DI.shape[1])
        if any(grow):
            pad = ((0, grow[0]), (0, grow[1]))
            self._passes_DI = np.pad(self._passes_DI, pad)
            self._fails_DI = np.pad(self._fails_DI, pad)
            self._version_DI = np.pad(self._version_DI, pad, constant_values=_NEVER)


def require_format(what: str, saved: Mapping[str, Any], expected: int, kind: str | None = None) -> None:
    """Raise unless a saved state has this kind and format version."""
    found = saved.get("format")
    if found != expected:
        raise ValueError(
            f"{what} state has format {found!r}, this version reads {expected}: resume with the version that wrote it"
        )
    if kind is not None and saved.get("kind") != kind:
        raise ValueError(f"{what} state is of kind {saved.get('kind')!r}, this run samples with {kind!r}")
