"""Several votes on each rollout: a verdict needs more than half of them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from arise.ports import Judge
from arise.types import Judgment, Pool, Rollout, Task, Verdict
from arise.types.absence import SPLIT


@dataclass(frozen=True)
class Majority:
    """Ask every judge and keep what more than half of them say; with two, what both say."""

    judges: Sequence[Judge]

    @property
    def identity(self) -> str:
        """The first judge and the number of votes, e.g. `gpt-4o-mini/9ab34c0d x3`."""
        return f"{self.judges[0].identity} x{len(self.judges)}"

    async def judge(self, task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        """Judge with every vote at once; diagnostics are those of the first vote that has any."""
        votes = await asyncio.gather(*(judge.judge(task, rollout, pool) for judge in self.judges))
        return merged(votes, pool, self.identity)


def merged(votes: Sequence[Judgment], pool: Pool, identity: str) -> Judgment:
    """Return the majority of each rubric; without one the verdict is absent, with the reason."""
    verdicts: dict[str, Verdict] = {}
    absent: dict[str, str] = {}
    for rubric in pool.rubrics:
        given = Counter(vote.verdicts[rubric.id] for vote in votes if rubric.id in vote.verdicts)
        best, count = given.most_common(1)[0] if given else (None, 0)
        if best is not None and 2 * count > len(votes):
            verdicts[rubric.id] = best
        elif given.total() == len(votes):
            absent[rubric.id] = f"{SPLIT}: {', '.join(f'{n} {verdict.value}' for verdict, n in given.items())}"
        else:
            absent[rubric.id] = next(vote.absent[rubric.id] for vote in votes if rubric.id in vote.absent)
    with_diagnostic = next((vote for vote in votes if vote.diagnostic is not None), votes[0])
    reasons = {
        rubric_id: why
        for vote in reversed(votes)
        for rubric_id, why in vote.reasons.items()
        if vote.verdicts.get(rubric_id) is verdicts.get(rubric_id)
    }
    notes = tuple(dict.fromkeys(note for vote in votes for note in vote.notes))
    return Judgment(
        votes[0].pool_version,
        identity,
        verdicts,
        absent,
        with_diagnostic.diagnostic,
        with_diagnostic.diagnostic_absent,
        notes=notes,
        reasons=reasons,
    )
