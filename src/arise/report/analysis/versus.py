"""The screen and the JSON of `arise analyze A --against B`."""

from typing import Any

from arise.analyze.against import Comparison, Paired
from arise.report.analysis.facts import rate_of
from arise.report.analysis.screen import percent
from arise.text import numbers

SHOWN = 8


def versus_facts(found: Comparison) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    return {
        "finding": found.finding.value,
        "exit_code": found.finding.exit_code,
        "passes": _paired(found.passes),
        "minimum_detectable_difference": None if found.detectable is None else round(found.detectable, 6),
        "improved_tasks": list(found.improved),
        "regressed_tasks": list(found.regressed),
        "behaviours": [
            {"id": c.behaviour.id, "name": c.behaviour.name, "q": float(f"{c.q:.6g}")} | _paired(c.paired)
            for c in found.behaviours
        ],
        "left_out": dict(found.left_out),
    }


def _paired(paired: Paired) -> dict[str, Any]:
    interval = paired.interval
    return {
        "first": rate_of(paired.ours),
        "second": rate_of(paired.theirs),
        "pairs": paired.pairs,
        "better": paired.better,
        "worse": paired.worse,
        "difference": None if paired.difference is None else round(paired.difference, 6),
        "interval": None if interval is None else [round(bound, 6) for bound in interval],
        "p": float(f"{paired.p:.6g}"),
    }


def versus_screen(found: Comparison, ours: str, theirs: str) -> str:
    """Return the screen: the result first, then the reasons."""
    facts, passes = versus_facts(found), found.passes
    lines = [
        f"{ours} against {theirs}: {found.finding.value}",
        f"pass rate  {percent(facts['passes']['first'])} against {percent(facts['passes']['second'])}, "
        f"{passes.pairs:,} shared tasks",
    ]
    if passes.difference is not None:
        low, high = passes.interval or (float("nan"), float("nan"))
        lines.append(
            f"difference {numbers.difference(passes.difference)} points ({numbers.span(low, high, signed=True)}); "
            f"{passes.better:,} tasks better, {passes.worse:,} worse, exact McNemar p {passes.p:.2g}"
        )
    if found.detectable is not None:
        lines.append(
            f"           differences below {numbers.points(found.detectable)} points would mostly go unnoticed"
        )
    for title, names in (("better on", found.improved), ("worse on", found.regressed)):
        if names:
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(f"{title:<10} {', '.join(names[:SHOWN])}{more}")
    lines += [f"left out   {count:,} {reason}" for reason, count in found.left_out.items()]
    if found.behaviours:
        lines += ["", "behaviours missed, first against second"]
    for change in found.behaviours[:SHOWN]:
        row, difference = change.paired, change.paired.difference or 0.0
        word = "worse" if difference > 0 else "better" if difference < 0 else "same"
        lines.append(
            f"  {word:<7}{change.behaviour.name}: {percent(rate_of(row.ours))} against {percent(rate_of(row.theirs))}, "
            f"q {change.q:.2g}"
        )
    return "\n".join(lines)
