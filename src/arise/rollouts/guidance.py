"""Evolved skills in the system prompt: which of them a rollout sees, and how they are written down."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from arise.method.need import urgency
from arise.types import Pair, Pool, Rollout, ShownSkill

HEADING = "Guidance :"
SHARE_OF_WINDOW = 0.6
"""What shown texts may take of the model's window unless told otherwise; the rest is for the task and the work."""


@dataclass(frozen=True)
class SkillLimit:
    """Most tokens that shown texts may take in one prompt, and how they are counted."""

    tokens: int
    count: Callable[[str], int]

    @classmethod
    def of(cls, chosen: int, window: int, count: Callable[[str], int]) -> "SkillLimit":
        """The limit that is configured, or for 0 a share of the policy's window; each text is counted once."""
        return cls(chosen or int(SHARE_OF_WINDOW * window), cache(count))

    def fit(self, shown: Sequence[Pair]) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """What a rollout sees, in the order given, and what is left out.

        Newest need first, the weakest among equals, then the newest pair: each gets its place if it still fits.
        """
        left = self.tokens - self.count(f"{HEADING}\n")
        kept = set[int]()
        for place in sorted(range(len(shown)), key=lambda n: (urgency(shown[n]), -n)):
            tokens = self.count(f"- {shown[place].skill.text}\n")
            if tokens <= left:
                kept.add(place)
                left -= tokens
        seen = tuple(pair for place, pair in enumerate(shown) if place in kept)
        return seen, tuple(pair for place, pair in enumerate(shown) if place not in kept)


def guessed_tokens(text: str) -> int:
    """A careful guess at the tokens of a text, for a policy whose tokenizer is not at hand."""
    return len(text) // 3 + 1


def active_pairs(pool: Pool) -> tuple[Pair, ...]:
    """The pairs whose skill is shown now, oldest first."""
    return tuple(pair for pair in pool.pairs if pair.skill.active)


def with_guidance(base: str, texts: Sequence[str]) -> str:
    """The base prompt with each text below it; without any, the base prompt alone."""
    return "\n".join([base, HEADING, *(f"- {text}" for text in texts)]) if texts else base


def system_prompt(base: str, shown: Sequence[Pair]) -> str:
    """The base prompt with every shown skill below it."""
    return with_guidance(base, [pair.skill.text for pair in shown])


def left_out_ids(rollouts: Iterable[Rollout]) -> list[str]:
    """The rubrics whose skills did not fit into a prompt of these rollouts."""
    return sorted({skill.rubric_id for rollout in rollouts for skill in rollout.trajectory.left_out})


def left_out_text(ids: Sequence[str]) -> str:
    """What a person is told when skills do not fit."""
    return (
        f"warning: {len(ids)} active skill{'s' * (len(ids) != 1)} left out of prompts that cannot hold all: "
        f"{', '.join(ids)}; newest need first, raise guidance.max_tokens to show more"
    )


def shown_skills(shown: Sequence[Pair]) -> tuple[ShownSkill, ...]:
    """What a trajectory records of the skills it saw."""
    return tuple(ShownSkill(pair.rubric.id, pair.skill.revision) for pair in shown)
