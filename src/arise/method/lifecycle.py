"""The life of a rubric-skill pair: its skill is shown, refined or hidden by the pass rate; mastered, it retires."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from arise.config.pool import PoolConfig
from arise.method.pass_rate import pass_rate
from arise.types import Fate, Pair, Pool, PoolEvent, Proposal, Rewrite, Rubric, Skill, Tally

PAPER = PoolConfig()
UNCHANGED = "skill unchanged: "
"""How the note of a refinement without a new text begins."""


def fate(active: bool, passes: int, evaluations: int, activate_at: float = 0.3, retire_at: float = 0.9) -> Fate:
    """Eqs. 5, 7 — what an update does with a pair; both thresholds are inclusive, no evidence changes nothing."""
    if not 0.0 <= activate_at < retire_at <= 1.0:
        raise ValueError(f"need 0 <= activate_at < retire_at <= 1, got {activate_at} and {retire_at}")
    rate = pass_rate(Tally(passes, evaluations))
    if rate is None:
        return Fate.KEEP
    if rate >= retire_at:
        return Fate.RETIRE
    if rate <= activate_at:
        return Fate.REFINE if active else Fate.ACTIVATE
    return Fate.HIDE if active else Fate.KEEP


def fates(pool: Pool, tallies: Mapping[str, Tally], limits: PoolConfig = PAPER) -> dict[str, Fate]:
    """Decide what an update does with every pair, by id; with fewer than `min_evaluations` verdicts a pair is kept.

    `tallies` holds the passes among the applicable verdicts since the last update, e.g. `{"r003": Tally(3, 10)}`.
    """
    unknown = sorted(set(tallies) - {rubric.id for rubric in pool.rubrics})
    if unknown:
        pool.find(unknown[0])
    decided = {}
    for pair in pool.pairs:
        tally = tallies.get(pair.rubric.id, Tally())
        pass_rate(tally)  # counts that cannot be are an error even where they are too few to decide
        counted = tally if tally.evaluations >= limits.min_evaluations else Tally()
        kind = fate(pair.skill.active, *counted, limits.activate_at, limits.retire_at)
        if kind is Fate.RETIRE and not limits.retires:
            kind = Fate.HIDE if pair.skill.active else Fate.KEEP
        decided[pair.rubric.id] = kind
    return decided


def deciding(
    tallies: Mapping[str, Tally], unguided: Mapping[str, Tally], limits: PoolConfig = PAPER
) -> dict[str, Tally]:
    """Return the counts that decide each pair's fate: all of the window, or the unguided ones (`rate = "unguided"`).

    A window without any unguided verdict is decided by all: where every rollout sees a skill, the two coincide.
    """
    if limits.rate == "all":
        return dict(tallies)
    return {name: own if (own := unguided.get(name, Tally())).evaluations else every for name, every in tallies.items()}


def room(pool: Pool, decided: Mapping[str, Fate], limits: PoolConfig = PAPER) -> int:
    """How many new pairs this update may still add: at most `max_new_pairs`, and the pool stays within `max_pairs`."""
    staying = sum(decided[rubric.id] is not Fate.RETIRE for rubric in pool.rubrics)
    return max(0, min(limits.max_new_pairs, limits.max_pairs - staying))


def refined(skill: Skill, text: str) -> Skill:
    """Eq. 8 — s_i' in the place of s_i: new text, next revision, still active; the rubric is not touched."""
    return replace(skill, text=text, revision=skill.revision + 1, earlier=(*skill.earlier, skill.text))


@dataclass(frozen=True)
class Evolution:
    """P_{k+1} and what happened on the way, in the algorithm's order."""

    pool: Pool
    events: tuple[PoolEvent, ...]


def evolve(
    pool: Pool,
    tallies: Mapping[str, Tally],
    *,
    iteration: int,
    unguided: Mapping[str, Tally] | None = None,
    rewrites: Mapping[str, Rewrite] | None = None,
    proposals: Sequence[Proposal] = (),
    limits: PoolConfig = PAPER,
) -> Evolution:
    """Eq. 6 — P_{k+1}: activate, refine and hide skills, retire mastered pairs, add proposals with hidden skills."""
    unguided, rewrites = unguided or {}, rewrites or {}
    decided = fates(pool, deciding(tallies, unguided, limits), limits)
    for rubric_id in rewrites:
        if pool.find(rubric_id) and decided[rubric_id] is not Fate.REFINE:
            raise ValueError(
                f"rewrite for {rubric_id!r}, whose fate is {decided[rubric_id]}: only refined skills change"
            )
    if len(proposals) > room(pool, decided, limits):
        raise ValueError(f"{len(proposals)} proposals, but this update has room for {room(pool, decided, limits)}")

    events: dict[Fate, list[PoolEvent]] = {kind: [] for kind in Fate}
    staying: list[Pair] = []
    gone: list[Pair] = []
    for pair in pool.pairs:
        name = pair.rubric.id
        kind = decided[name]
        after, note = _apply(pair, kind, rewrites.get(name, Rewrite(None, "no rewrite was made")))
        if kind is Fate.RETIRE:
            gone.append(replace(after, retired=iteration))
        else:
            staying.append(after)
        if kind is not Fate.KEEP:
            counts = *tallies[name], after.skill.revision, note, *unguided.get(name, Tally())
            events[kind].append(PoolEvent(iteration, name, kind, *counts))
    new = [_new_pair(proposal, pool.born + n, iteration) for n, proposal in enumerate(proposals, start=1)]
    born = [PoolEvent(iteration, pair.rubric.id, "born", note=pair.rubric.criteria_text) for pair in new]

    pairs = (*staying, *new)
    changed = pairs != pool.pairs
    ordered = [event for kind in (Fate.ACTIVATE, Fate.REFINE, Fate.HIDE, Fate.RETIRE) for event in events[kind]]
    retired = (*pool.retired, *gone)
    return Evolution(Pool(pairs, pool.version + changed, pool.born + len(new), retired), (*ordered, *born))


def _apply(pair: Pair, kind: Fate, rewrite: Rewrite) -> tuple[Pair, str]:
    """Return the pair after its fate, and a note; a refinement without a valid rewrite keeps the old skill active."""
    if kind is Fate.ACTIVATE:
        return replace(pair, skill=replace(pair.skill, active=True)), ""
    if kind in (Fate.HIDE, Fate.RETIRE):
        return replace(pair, skill=replace(pair.skill, active=False)), ""
    if kind is Fate.REFINE:
        if rewrite.text is None:
            return pair, f"{UNCHANGED}{rewrite.reason}"
        return replace(pair, skill=refined(pair.skill, rewrite.text)), ""
    return pair, ""


def _new_pair(proposal: Proposal, number: int, iteration: int) -> Pair:
    rubric = Rubric(
        id=f"r{number:03d}",
        criteria_text=proposal.criteria_text,
        issue_tag=proposal.issue_tag,
        capability=proposal.capability,
        applicability_condition=proposal.applicability_condition,
        rule_text=proposal.rule_text,
        born=iteration,
        issue_refs=proposal.issue_refs,
        contrast_refs=proposal.contrast_refs,
    )
    return Pair(rubric, Skill(proposal.skill_text))
