"""OnlineRubrics (arXiv 2510.07284): criteria elicited from how a group's rollouts differ from reference attempts.

They apply to that group only: nothing accumulates. The comparison uses the judge's diagnostics of both attempts, and
the reflector writes the criteria, so any judge and reflector of ARISE can be used.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from arise.config.baselines import ElicitedCriteria
from arise.method.evidence import records_of
from arise.ports import Judge, Reflector
from arise.types import GenerationRecord, Group, Judgment, Pair, Pool, Proposal, Rollout, Rubric, Selection, Skill, Task

References = Callable[[Task], Awaitable[Sequence[Rollout]]]
"""The reference attempts at a task, made once and kept."""


@dataclass(frozen=True)
class OnlineRubrics:
    """Elicit a group's criteria, then judge the group by them."""

    judge: Judge
    reflector: Reflector
    references: References
    settings: ElicitedCriteria

    async def assess(self, group: Group, pool: Pool) -> Group:
        """Judge a group by its own criteria."""
        usable = [rollout for rollout in group.rollouts if not rollout.fault]
        criteria = Pool(tuple(await self._elicit(group.task, usable)), pool.version)
        judged = iter(await asyncio.gather(*(self._judged(group.task, rollout, criteria) for rollout in usable)))
        return replace(group, rollouts=tuple(r if r.fault else next(judged) for r in group.rollouts))

    async def _judged(self, task: Task, rollout: Rollout, criteria: Pool) -> Rollout:
        if not criteria.pairs:
            return replace(rollout, judgment=Judgment(criteria.version, self.judge.identity))
        judgment = await self.judge.judge(task, rollout, criteria)
        notes = tuple(f"criterion {rubric.id}: {rubric.criteria_text}" for rubric in criteria.rubrics)
        return replace(rollout, judgment=replace(judgment, notes=(*judgment.notes, *notes)))

    async def _elicit(self, task: Task, rollouts: Sequence[Rollout]) -> list[Pair]:
        """Compare rollout j with reference j, one call per pair; later calls must not repeat earlier findings."""
        references = await self.references(task)
        pairs = list(zip(rollouts, references, strict=False))
        records = await asyncio.gather(*(self._compared(task, *pair) for pair in pairs))
        found: dict[str, Pair] = {}
        for number, record in enumerate(records):
            chosen = tuple(view for view in record if view.uncovered_issues or view.positive_uncovered_strategies)
            if not chosen:
                continue
            selection = Selection(chosen, len(record), len(chosen))
            reflection = await self.reflector.propose(selection, list(found.values()), self.settings.per_pair, number)
            for proposal in reflection.proposals:
                pair = _criterion(proposal)
                found.setdefault(pair.rubric.id, pair)
        return list(found.values())

    async def _compared(self, task: Task, rollout: Rollout, reference: Rollout) -> list[GenerationRecord]:
        """Compare the diagnostics of the two attempts, each analysed without rubrics."""
        attempts = [rollout, reference]
        judgments = await asyncio.gather(*(self.judge.judge(task, attempt, Pool()) for attempt in attempts))
        analysed = [replace(a, judgment=judgment) for a, judgment in zip(attempts, judgments, strict=True)]
        return [record.view for record in records_of(0, [Group(task, tuple(analysed), len(analysed))])]


def _criterion(proposal: Proposal) -> Pair:
    """Return a proposal as a rubric whose id derives from its text, so equal criteria share an id across groups."""
    rubric_id = "c" + blake2b(proposal.criteria_text.encode(), digest_size=4).hexdigest()
    rubric = Rubric(
        rubric_id,
        proposal.criteria_text,
        proposal.issue_tag,
        proposal.capability,
        proposal.applicability_condition,
        proposal.rule_text,
    )
    return Pair(rubric, Skill(proposal.skill_text))
