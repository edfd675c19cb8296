"""Explain in one sentence, with the deciding numbers, why a slot of a batch got its task."""

from typing import NamedTuple

from arise.text.numbers import decimal, percent
from arise.types import Draw, DrawPath


class Mass(NamedTuple):
    """The success and failure mass of a cell when the batch was drawn."""

    passes: float
    fails: float


def why(draw: Draw, mass: Mass | None = None) -> str:
    """Explain a draw: `Adaptive: Verification in unit harmonization looked improvable ...`; `mass` is its cell's."""
    if draw.path is DrawPath.ADAPTIVE:
        return _adaptive(draw, mass)
    return _REASONS[draw.path](draw)


def _adaptive(draw: Draw, mass: Mass | None) -> str:
    task_type, capability = draw.cell or ("?", "?")
    counts = (
        ""
        if mass is None
        else f" ({decimal(mass.passes, 1)} passes and {decimal(mass.fails, 1)} fails, older ones counting less)"
    )
    return (
        f"Adaptive: {capability} in {task_type.replace('-', ' ')} looked improvable. A draw from its pass "
        f"record{counts} gave {percent(draw.estimate)}, weight {decimal(draw.weight)} (largest at 33 %, neither "
        f"hopeless nor mastered). Slots of this batch it may still get: {draw.quota_left}; "
        f"chance of this task {percent(draw.probability)}."
    )


def _discovery(draw: Draw) -> str:
    return (
        f"Discovery: with chance ρ = {decimal(draw.rho)} a slot goes to a task that some rubric was not yet "
        f"judged on. Tasks tried less often come first: this one was {_tried(draw.attempts)}; "
        f"chance {percent(draw.probability)}."
    )


def _fallback(draw: Draw) -> str:
    return (
        "Fallback: no cell had both evidence and quota left, so the slot went to a task tried rarely "
        f"(this one was {_tried(draw.attempts)}); chance {percent(draw.probability)}."
    )


def _uniform(draw: Draw) -> str:
    return f"Uniform: every task comes once an epoch, in shuffled order; chance {percent(draw.probability)}."


def _vade(draw: Draw) -> str:
    return (
        f"VADE: a draw from the task's verified outcomes gave {percent(draw.estimate)}, which promises most to learn "
        f"(weight {decimal(draw.weight)})."
    )


_REASONS = {
    DrawPath.DISCOVERY: _discovery,
    DrawPath.FALLBACK: _fallback,
    DrawPath.UNIFORM: _uniform,
    DrawPath.VADE: _vade,
}


def _tried(count: int | None) -> str:
    return {None: "tried before", 0: "never tried before", 1: "tried once"}.get(count, f"tried {count} times")
