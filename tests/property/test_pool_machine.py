"""A whole life of pool and sampler under random verdicts; invariants I3-I7 of the design's reliability notes."""

from collections import Counter

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from arise.config.pool import PoolConfig
from arise.config.sampler import CapabilitySampling
from arise.method.evidence import records_of, within_window
from arise.method.ledger import CAPABILITIES
from arise.method.lifecycle import evolve, fates, room
from arise.method.pass_rate import window_tallies
from arise.method.sampler import CapabilitySampler, cell_quota
from arise.types import Draw, DrawPath, EvidenceRecord, Fate, Pool, Rewrite
from tests.builders import a_group, a_proposal, a_task

TASKS = [a_task(f"x{n}", *(f"d{d}" for d in range(3) if (n + d) % 3)) for n in range(12)]
LIMITS = PoolConfig(update_every=2, max_pairs=7, max_new_pairs=3)
SAMPLING = CapabilitySampling(quota_fraction=0.3)
SKILL_LEVELS = st.sampled_from([0.0, 0.2, 0.5, 0.95, 1.0])


class PoolMachine(RuleBasedStateMachine):
    """Iterations with judged groups, and an update after every second one."""

    @initialize(seed=st.integers(0, 2**32 - 1))
    def start(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.sampler = CapabilitySampler(TASKS, np.random.default_rng(seed), SAMPLING)
        self.pool, self.iteration, self.version = Pool(), 0, 0
        self.records: list[EvidenceRecord] = []
        self.retired: set[str] = set()
        self.batch: list[Draw] = []
        self.count = 1
        self.due = False

    @precondition(lambda self: not self.due)
    @rule(count=st.integers(1, 12), level=SKILL_LEVELS, applies=SKILL_LEVELS, versions=st.integers(0, 3))
    def iterate(self, count: int, level: float, applies: float, versions: int) -> None:
        """Draw a batch, judge it with the given pass probability, learn."""
        self.count, self.batch = count, self.sampler.draw(count, self.version)
        groups = []
        for draw in self.batch:
            letters = {}
            for rubric in self.pool.rubrics:
                passed, speaks, lost = (self.random.random(3) < chance for chance in (level, applies, 0.1))
                chosen = np.where(lost, "-", np.where(~speaks, "n", np.where(passed, "1", "0")))
                letters[rubric.id] = "".join(chosen.tolist())
            rewards = [None if self.random.random() < 0.05 else 1.0 for _ in range(3)]
            groups.append(a_group(TASKS[int(draw.task_id[1:])], letters, rewards))
        before = self.pool
        self.records += records_of(self.iteration, groups)
        self.version += versions
        self.sampler.observe(groups, self.pool, self.version)
        self.iteration += 1
        self.due = self.iteration % LIMITS.update_every == 0
        assert self.pool == before, "I3: membership changes at updates only"

    @precondition(lambda self: self.due)
    @rule(wanted=st.integers(0, 3), rewritten=st.booleans())
    def update(self, wanted: int, rewritten: bool) -> None:
        """Decide, write, apply."""
        window = within_window(self.records, self.iteration - 1, LIMITS.update_every)
        tallies = window_tallies(window, [rubric.id for rubric in self.pool.rubrics])
        decided = fates(self.pool, tallies, LIMITS)
        proposals = [
            a_proposal(f"{self.iteration}-{n}", CAPABILITIES[self.random.integers(5)])
            for n in range(min(wanted, room(self.pool, decided, LIMITS)))
        ]
        rewrites = {i: Rewrite("better" if rewritten else None) for i, kind in decided.items() if kind is Fate.REFINE}
        evolution = evolve(
            self.pool, tallies, iteration=self.iteration, rewrites=rewrites, proposals=proposals, limits=LIMITS
        )
        before, after = self.pool, evolution.pool
        old_ids, new_ids = ({rubric.id for rubric in pool.rubrics} for pool in (before, after))
        assert old_ids - new_ids == {i for i, kind in decided.items() if kind is Fate.RETIRE}
        fresh = [pair for pair in after.pairs if pair.rubric.id not in old_ids]
        assert len(fresh) == len(proposals) <= LIMITS.max_new_pairs, "I4"
        assert not any(pair.skill.active for pair in fresh), "I4: new skills are hidden"
        self.retired |= old_ids - new_ids
        for pair in after.pairs:
            if pair.rubric.id in old_ids:
                earlier = before.find(pair.rubric.id)
                assert pair.rubric == earlier.rubric, "a rubric never changes"
                assert pair.skill.revision - earlier.skill.revision in (0, 1)
                assert (pair.skill.text == earlier.skill.text) == (pair.skill.revision == earlier.skill.revision) or (
                    earlier.skill.text == "better"
                )
        assert after.version == before.version + (after.pairs != before.pairs)
        self.pool, self.due = after, False
        self.sampler.keep_only(self.pool)

    @rule()
    def restart(self) -> None:
        """The sampler is replaced by one restored from its own state."""
        again = CapabilitySampler(TASKS, np.random.default_rng(0), SAMPLING)
        again.restore(self.sampler.to_dict())
        assert again.members == self.sampler.members
        self.sampler = again

    @invariant()
    def the_pool_is_within_its_cap_and_ids_never_return(self) -> None:
        ids = [rubric.id for rubric in self.pool.rubrics]
        assert len(ids) <= LIMITS.max_pairs, "I4"
        assert len(set(ids)) == len(ids)
        assert not self.retired & set(ids), "I5"
        assert self.pool.born == len(self.retired) + len(ids)

    @invariant()
    def the_ledger_holds_only_active_rubrics(self) -> None:
        saved = self.sampler.ledger.to_dict()
        assert {i for i, _ in saved["rubrics"]} == {rubric.id for rubric in self.pool.rubrics}, "I6"
        for _, rubric_id, passes, fails, _ in saved["tallies"]:
            assert self.pool.find(rubric_id)
            assert passes >= 0
            assert fails >= 0
            assert passes + fails > 0

    @invariant()
    def a_batch_has_no_task_twice_and_respects_the_quota(self) -> None:
        assert len({draw.task_id for draw in self.batch}) == len(self.batch), "I7"
        adaptive = Counter(draw.cell for draw in self.batch if draw.path is DrawPath.ADAPTIVE)
        assert all(count <= cell_quota(self.count, SAMPLING.quota_fraction) for count in adaptive.values()), "I7"

    @invariant()
    def members_are_the_tasks_with_applicable_evidence(self) -> None:
        for cell, members in self.sampler.members.items():
            applicable = self.sampler.coverage.applicable(cell.capability)
            tagged = [x for x, task in enumerate(TASKS) if cell.task_type in task.task_types and applicable[x]]
            assert members == tagged


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestPoolMachine = PoolMachine.TestCase
