"""Algorithm 1, lines 19-25: decide each pair's fate (pure), have the reflector write, apply (pure)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from arise.config import Evidence, PoolLimits, Watch
from arise.method.evidence import for_generation, for_refinement, within_window
from arise.method.lifecycle import Evolution, evolve, fates, room
from arise.method.pass_rate import window_tallies
from arise.method.watch import reopened, unlearned
from arise.ports import Reflector
from arise.state import State
from arise.types import Fate, Pair, Proposal, Rejection, Rewrite, ShownSkill


@dataclass(frozen=True)
class Update:
    """What a scheduled update did: the evolution, and every proposal and rewrite that was not taken."""

    evolution: Evolution
    proposals: tuple[Proposal, ...]
    rejections: tuple[Rejection, ...]


class Reflection:
    """Evolves the pool from the window's evidence with a reflector; `refine` off leaves failing skills as they are.

    With a watch, retired pairs that were unlearned come back.
    """

    def __init__(
        self,
        reflector: Reflector,
        limits: PoolLimits,
        evidence: Evidence,
        seed: int,
        refine: bool = True,
        watch: Watch | None = None,
    ) -> None:
        self.reflector, self.limits, self.evidence, self.seed, self.refine = reflector, limits, evidence, seed, refine
        self.watch = watch or Watch()

    async def update(self, state: State, iteration: int) -> Update:
        """The pool after this update; the state itself is not touched."""
        since_last_update = within_window(state.evidence, iteration - 1, self.limits.update_every)
        tallies = window_tallies(since_last_update, [rubric.id for rubric in state.pool.rubrics])
        decided = fates(state.pool, tallies, self.limits)
        failing = [pair for pair in state.pool.pairs if decided[pair.rubric.id] is Fate.REFINE]
        watched = window_tallies(since_last_update, [pair.rubric.id for pair in state.pool.retired])
        fallen = unlearned(state.pool, watched, self.watch)
        wanted = room(state.pool, decided, self.limits)
        (proposals, rejections), written = await asyncio.gather(
            self._propose(state, iteration, wanted, fallen),
            asyncio.gather(*(self._rewrite(pair, state, iteration) for pair in failing)),
        )
        rewrites = {pair.rubric.id: rewrite for pair, rewrite in zip(failing, written, strict=True)}
        evolution = evolve(
            state.pool, tallies, iteration=iteration, rewrites=rewrites, proposals=proposals, limits=self.limits
        )
        evolution = reopened(evolution, fallen, watched, iteration, self.limits.max_pairs)
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

    async def _propose(
        self, state: State, iteration: int, wanted: int, returning: Sequence[Pair]
    ) -> tuple[list[Proposal], list[Rejection]]:
        """Rounds of generation until there is no room, a round brings nothing new, or the rounds are used up."""
        proposals: list[Proposal] = []
        rejections: list[Rejection] = []
        for round_number in range(self.evidence.generation_rounds):
            left = wanted - len(proposals)
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
            avoid = [*state.pool.pairs, *returning, *(proposal.as_pair() for proposal in proposals)]
            reflection = await self.reflector.propose(selection, avoid, left, round_number)
            rejections += reflection.rejections
            if not reflection.proposals:
                break
            proposals += reflection.proposals
        return proposals, rejections
