"""Explain why a slot of a batch got its task: the reason in one line, and the arithmetic behind it."""

from typing import NamedTuple

from arise.text.numbers import decimal, percent
from arise.types import Draw, DrawPath


class Mass(NamedTuple):
    """The success and failure mass of a cell when the batch was drawn."""

    passes: float
    fails: float


class Reason(NamedTuple):
    """Why a task was drawn: `Reason("Adaptive: Verification in unit harmonization ...", "A draw from ...")`."""

    line: str
    arithmetic: str

    def __str__(self) -> str:
        return f"{self.line} {self.arithmetic}"


def why(draw: Draw, mass: Mass | None = None) -> Reason:
    """Explain a draw; `mass` is that of its cell."""
    if draw.path is DrawPath.ADAPTIVE:
        return _adaptive(draw, mass)
    return _REASONS[draw.path](draw)


def _adaptive(draw: Draw, mass: Mass | None) -> Reason:
    task_type, capability = draw.cell or ("?", "?")
    counts = (
        ""
        if mass is None
        else f" ({decimal(mass.passes, 1)} passes and {decimal(mass.fails, 1)} fails, older ones counting less)"
    )
    return Reason(
        f"Adaptive: {capability} in {task_type.replace('-', ' ')} looked improvable.",
        f"A draw from its pass record{counts} gave {percent(draw.estimate)}, weight {decimal(draw.weight)} (largest at "
        f"33 %, neither hopeless nor mastered). Slots of this batch it may still get: {draw.quota_left}; "
        f"chance of this task {percent(draw.probability)}.",
    )


def _discovery(draw: Draw) -> Reason:
    return Reason(
        f"Discovery: some rubric was not yet judged on this task ({_tried(draw.attempts)}).",
        f"A slot goes to such a task with chance ρ = {decimal(draw.rho)}. Tasks tried less often come first; "
        f"chance {percent(draw.probability)}.",
    )


def _fallback(draw: Draw) -> Reason:
    return Reason(
        f"Fallback: no cell had both evidence and quota left; this task was {_tried(draw.attempts)}.",
        f"Tasks tried rarely come first; chance {percent(draw.probability)}.",
    )


def _uniform(draw: Draw) -> Reason:
    return Reason("Uniform: every task comes once an epoch, in shuffled order.", f"Chance {percent(draw.probability)}.")


def _vade(draw: Draw) -> Reason:
    return Reason(
        "VADE: the task's verified outcomes promise most to learn.",
        f"A draw from them gave {percent(draw.estimate)}, weight {decimal(draw.weight)}.",
    )


_REASONS = {
    DrawPath.DISCOVERY: _discovery,
    DrawPath.FALLBACK: _fallback,
    DrawPath.UNIFORM: _uniform,
    DrawPath.VADE: _vade,
}


def _tried(count: int | None) -> str:
    return {None: "tried before", 0: "never tried before", 1: "tried once"}.get(count, f"tried {count} times")
