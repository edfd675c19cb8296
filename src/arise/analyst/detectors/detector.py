"""The structure of a detector: an opportunity that is independent of compliance, then a verdict on the response."""

from collections.abc import Callable
from dataclasses import dataclass

from arise.analyst.trace import Trace


@dataclass(frozen=True, slots=True)
class Opportunity:
    """Where an opportunity begins and which files it concerns."""

    seq: int = -1
    paths: tuple[str, ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """`Finding(False, "never", "turn 4 wrote out.csv, nothing read it back", 4)`; `miss` names the way it failed."""

    passed: bool
    miss: str
    detail: str
    turn: int = 0
    """The agent's turn that shows a miss, counted from 1; 0 where the whole trace shows it."""


@dataclass(frozen=True)
class Detector:
    """An executable pattern: `when` and `passes` describe in one line what it checks, `blind` what it cannot see."""

    pattern_id: str
    when: str
    passes: str
    blind: str
    opening: Callable[[Trace], Opportunity | None]
    verdict: Callable[[Trace, Opportunity], Finding]

    def applicable(self, trace: Trace) -> bool:
        return self.opening(trace) is not None

    def find(self, trace: Trace) -> Finding | None:
        """Return the verdict, or None if the trace offered no opportunity."""
        opening = self.opening(trace)
        return None if opening is None else self.verdict(trace, opening)


def passed(detail: str) -> Finding:
    """Return the finding of a behaviour that was shown."""
    return Finding(True, "", detail)


def failed(miss: str, detail: str, turn: int = 0) -> Finding:
    """Return the finding of a behaviour that was missed: how, and in which turn."""
    return Finding(False, miss, detail, turn)
