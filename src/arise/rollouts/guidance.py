"""Evolved skills in the system prompt: their selection for a rollout and their format."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from arise.method.need import urgency
from arise.types import Pair, Pool, Rollout, ShownSkill

HEADING = "Guidance :"
SHARE_OF_WINDOW = 0.6
"""The default share of the context window for shown texts; the rest is for the task and the attempt."""


@dataclass(frozen=True)
class SkillLimit:
    """The maximum number of tokens for shown texts in one prompt, and the token counter."""

    tokens: int
    count: Callable[[str], int]

    @classmethod
    def of(cls, chosen: int, window: int, count: Callable[[str], int]) -> "SkillLimit":
        """Return the configured limit, or for 0 a share of the context window; token counts are cached."""
        return cls(chosen or int(SHARE_OF_WINDOW * window), cache(count))

    def fit(self, shown: Sequence[Pair]) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """Return the pairs that fit into the prompt, in the given order, and the pairs left out.

        Pairs are added while they fit: newest need first, then the weakest, then the newest pair.
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
    """Return a conservative estimate of the tokens of a text, for a policy without a known tokenizer."""
    return len(text) // 3 + 1


def active_pairs(pool: Pool) -> tuple[Pair, ...]:
    """Return the pairs with an active skill, oldest first."""
    return tuple(pair for pair in pool.pairs if pair.skill.active)


def with_guidance(base: str, texts: Sequence[str]) -> str:
    """Return the base prompt followed by each text, if any."""
    return "\n".join([base, HEADING, *(f"- {text}" for text in texts)]) if texts else base


def system_prompt(base: str, shown: Sequence[Pair]) -> str:
    """Return the base prompt followed by every shown skill."""
    return with_guidance(base, [pair.skill.text for pair in shown])


def left_out_ids(rollouts: Iterable[Rollout]) -> list[str]:
    """Return the rubrics whose skills did not fit into a prompt of these rollouts."""
    return sorted({skill.rubric_id for rollout in rollouts for skill in rollout.trajectory.left_out})


def left_out_text(ids: Sequence[str]) -> str:
    """Return the message to the user about skills that do not fit."""
    return (
        f"warning: {len(ids)} active skill{'s' * (len(ids) != 1)} left out of prompts that cannot hold all: "
        f"{', '.join(ids)}; newest need first, raise guidance.max_tokens to show more"
    )


def shown_skills(shown: Sequence[Pair]) -> tuple[ShownSkill, ...]:
    """Return the record of shown skills for a trajectory."""
    return tuple(ShownSkill(pair.rubric.id, pair.skill.revision) for pair in shown)
