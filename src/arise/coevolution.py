"""Algorithm 1, lines 19-25: decide each pair's fate (pure), have the reflector write, apply (pure)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from arise.config.pool import EvidenceConfig, PoolConfig, WatchConfig
from arise.method.evidence import for_generation, for_refinement, within_window
from arise.method.lifecycle import Evolution, deciding, evolve, fates, room
from arise.method.need import with_needs
from arise.method.pass_rate import window_tallies
from arise.method.watch import Relapse, missing_again, reopened, unlearned
from arise.ports import Reflector
from arise.state import State
from arise.types import EvidenceRecord, Fate, Pair, Pool, Proposal, Rejection, Rewrite, ShownSkill


@dataclass(frozen=True)
class Update:
    """Result of a scheduled update: the evolution, accepted proposals and rejections."""

    evolution: Evolution
    proposals: tuple[Proposal, ...]
    rejections: tuple[Rejection, ...]


class CoEvolution:
    """Evolve the pool from the window's evidence with a reflector; `refine=False` keeps failing skills unchanged.

    A retired pair is reopened when watched verdicts show a relapse, or when generation proposes it again.
    """

    def __init__(
        self,
        reflector: Reflector,
        limits: PoolConfig,
        evidence: EvidenceConfig,
        seed: int,
        refine: bool = True,
        watch: WatchConfig | None = None,
    ) -> None:
        self.reflector, self.limits, self.evidence, self.seed, self.refine = reflector, limits, evidence, seed, refine
        self.watch = watch or WatchConfig()

    async def update(self, state: State, iteration: int) -> Update:
        """Return the pool after this update; does not modify the state."""
        since_last_update = within_window(state.evidence, iteration - 1, self.limits.update_every)
        ids = [rubric.id for rubric in state.pool.rubrics]
        every, unguided = (window_tallies(since_last_update, ids, unguided=only) for only in (False, True))
        decided = fates(state.pool, deciding(every, unguided, self.limits), self.limits)
        failing = [pair for pair in state.pool.pairs if decided[pair.rubric.id] is Fate.REFINE]
        fallen = self._unlearned(state.pool, since_last_update)
        wanted = room(state.pool, decided, self.limits)
        (proposals, rejections, returning), written = await asyncio.gather(
            self._propose(state, iteration, wanted, fallen),
            asyncio.gather(*(self._rewrite(pair, state, iteration) for pair in failing)),
        )
        rewrites = {pair.rubric.id: rewrite for pair, rewrite in zip(failing, written, strict=True)}
        evolution = evolve(
            state.pool,
            every,
            iteration=iteration,
            unguided=unguided,
            rewrites=rewrites,
            proposals=proposals,
            limits=self.limits,
        )
        evolution = reopened(evolution, [*fallen, *returning], iteration, self.limits.max_pairs)
        evolution = replace(evolution, pool=with_needs(evolution.pool, decided, every, iteration))
        rejections += [rejection for rewrite in written for rejection in rewrite.rejections]
        return Update(evolution, tuple(proposals), tuple(rejections))

    async def _rewrite(self, pair: Pair, state: State, iteration: int) -> Rewrite:
        if not self.refine:
            return Rewrite(None, "refinement is off in this run")
        shown = ShownSkill(pair.rubric.id, pair.skill.revision)
        failures = for_refinement(
            state.evidence, shown, seed=self.seed, update=iteration, limit=self.evidence.refinement_records
        )
        if not failures:
            return Rewrite(None, "no failed rollout saw this revision of the skill")
        return await self.reflector.rewrite(pair, failures)

    def _unlearned(self, pool: Pool, window: Sequence[EvidenceRecord]) -> tuple[Relapse, ...]:
        """Return retired pairs whose watched pass rate fell."""
        ids = [pair.rubric.id for pair in pool.retired]
        watched, unguided = (window_tallies(window, ids, unguided=only) for only in (False, True))
        return unlearned(pool, watched, self.watch, unguided)

    async def _propose(
        self, state: State, iteration: int, wanted: int, fallen: Sequence[Relapse]
    ) -> tuple[list[Proposal], list[Rejection], list[Relapse]]:
        """Run generation rounds until the pool is full, nothing new is proposed, or the rounds are used up.

        The reflector also sees retired pairs; a proposal that repeats one can only reopen it.
        """
        proposals: list[Proposal] = []
        rejections: list[Rejection] = []
        returning: list[Relapse] = []
        iteration_of = {record.view.evidence_id: record.view.iteration for record in state.evidence}
        for round_number in range(self.evidence.generation_rounds):
            left = wanted - len(proposals) - len(returning)
            if left < 1:
                break
            selection = for_generation(
                state.evidence,
                seed=self.seed,
                update=iteration,
                round_number=round_number,
                limit=self.evidence.generation_records,
            )
            if not selection.chosen:
                break
            avoid = _known(state.pool, [*fallen, *returning], proposals)
            reflection = await self.reflector.propose(selection, avoid, left, round_number)
            found, rejected = missing_again(state.pool, reflection.returns, iteration_of, self.limits.reopen_issues)
            rejections += (*reflection.rejections, *rejected)
            if not (reflection.proposals or reflection.returns or reflection.refused):
                break
            proposals += reflection.proposals
            returning += found
        return proposals, rejections, returning


def _known(pool: Pool, back: Sequence[Relapse], proposals: Sequence[Proposal]) -> list[Pair]:
    """Return the pairs generation must not repeat: pool, reopened, just proposed, retired."""
    returning = {relapse.pair.rubric.id: replace(relapse.pair, retired=None) for relapse in back}
    away = [pair for pair in pool.retired if pair.rubric.id not in returning]
    return [*pool.pairs, *returning.values(), *(proposal.as_pair() for proposal in proposals), *away]
