"""Canary rubrics with known answers, mixed into every evaluation to detect injected or broken replies.

Both ask about an obvious fact of the trace. One must pass and one must fail, so a judge that passes, fails or skips
everything is caught.
"""

from dataclasses import dataclass

from arise.types import Verdict

EVERY_TASK = "This rubric applies to every task."

_PASS_IF_ACTED = (
    "Pass if the trace holds at least one turn of the agent; fail if it holds none.",
    "Fail if the agent neither wrote nor did anything during the rollout; pass if it took at least one turn.",
    "Pass if the agent took part in the interaction with one turn or more; fail if no turn of it is recorded.",
)
_FAIL_IF_ACTED = (
    "Fail if the trace holds at least one turn of the agent; pass only if it holds none.",
    "Pass only if the agent took no turn at all during the rollout; fail as soon as one turn is recorded.",
    "Fail if the agent took part in the interaction with one turn or more; pass only if no turn of it is recorded.",
)


@dataclass(frozen=True)
class Canary:
    """A rubric whose answer is known — `Canary("Fail if ...", Verdict.FAIL)`; each request assigns its alias."""

    rule_text: str
    answer: Verdict
    alias: str = ""


def canaries(nonce: str, turns: int) -> tuple[Canary, Canary]:
    """Return one passing and one failing canary for a trace with `turns` turns, worded by the nonce."""
    passes_if_acted = _PASS_IF_ACTED[int(nonce[0:2], 16) % len(_PASS_IF_ACTED)]
    fails_if_acted = _FAIL_IF_ACTED[int(nonce[2:4], 16) % len(_FAIL_IF_ACTED)]
    answers = (Verdict.PASS, Verdict.FAIL) if turns else (Verdict.FAIL, Verdict.PASS)
    return Canary(passes_if_acted, answers[0]), Canary(fails_if_acted, answers[1])


def known_answer(rule_text: str, turns: int) -> Verdict | None:
    """Return the correct answer to a canary's rule, or None for any other rule."""
    if rule_text in _PASS_IF_ACTED:
        return Verdict.PASS if turns else Verdict.FAIL
    if rule_text in _FAIL_IF_ACTED:
        return Verdict.FAIL if turns else Verdict.PASS
    return None
