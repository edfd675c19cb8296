"""Evolved skills in the system prompt: which of them a rollout sees, and how they are written down."""

from collections.abc import Sequence

from arise.types import Pair, Pool, ShownSkill

HEADING = "Guidance :"


def active_pairs(pool: Pool) -> tuple[Pair, ...]:
    """The pairs whose skill is shown now, oldest first."""
    return tuple(pair for pair in pool.pairs if pair.skill.active)


def with_guidance(base: str, texts: Sequence[str]) -> str:
    """The base prompt with each text below it; without any, the base prompt alone."""
    return "\n".join([base, HEADING, *(f"- {text}" for text in texts)]) if texts else base


def system_prompt(base: str, shown: Sequence[Pair]) -> str:
    """The base prompt with every shown skill below it."""
    return with_guidance(base, [pair.skill.text for pair in shown])


def shown_skills(shown: Sequence[Pair]) -> tuple[ShownSkill, ...]:
    """What a trajectory records of the skills it saw."""
    return tuple(ShownSkill(pair.rubric.id, pair.skill.revision) for pair in shown)
