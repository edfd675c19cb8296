"""Everything a resume needs besides the policy's weights: iteration, pool, evidence, sampler."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from arise.method.evidence import records_of, within_window
from arise.method.ledger import require_format
from arise.method.set_aside import SetAside
from arise.ports import Sampler
from arise.types import Batch, EvidenceRecord, Group, Pool
from arise.types.codec import from_json, to_json

FORMAT = 1


@dataclass
class State:
    """The loop's own state; `evidence` is B_k with the verdicts that pass rates are counted from.

    `drawn` holds the batches that are already being rolled out, next iteration first.
    """

    sampler: Sampler
    iteration: int = 0
    pool: Pool = field(default_factory=Pool)
    evidence: list[EvidenceRecord] = field(default_factory=list)
    drawn: list[Batch] = field(default_factory=list)
    set_aside: SetAside = field(default_factory=SetAside)

    def add_evidence(self, iteration: int, groups: list[Group], window: int) -> None:
        """Alg. 1, line 13 — add an iteration's records and drop those outside the window."""
        self.evidence = within_window([*self.evidence, *records_of(iteration, groups)], iteration, window)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return {
            "format": FORMAT,
            "iteration": self.iteration,
            "pool": to_json(self.pool),
            "evidence": to_json(self.evidence),
            "sampler": self.sampler.to_dict(),
            **({"drawn": to_json(self.drawn)} if self.drawn else {}),
            **({"set_aside": self.set_aside.to_dict()} if self.set_aside.faulty else {}),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue exactly where `to_dict` was taken."""
        require_format("run", saved, FORMAT)
        self.iteration = saved["iteration"]
        self.pool = _dated(from_json(Pool, saved["pool"]), self.iteration)
        self.evidence = [from_json(EvidenceRecord, record) for record in saved["evidence"]]
        self.sampler.restore(saved["sampler"])
        self.drawn = [from_json(Batch, batch) for batch in saved.get("drawn", ())]
        self.set_aside.restore(saved.get("set_aside", {}))


def _dated(pool: Pool, iteration: int) -> Pool:
    """Set a retirement iteration on pairs from states of earlier versions, which lack one."""
    if all(pair.retired is not None for pair in pool.retired):
        return pool
    return replace(pool, retired=tuple(replace(pair, retired=pair.retired or iteration) for pair in pool.retired))
