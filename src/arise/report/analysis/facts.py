"""An analysis as one JSON document: every number and quote of the reports in a fixed order, with keys redacted."""

from collections.abc import Mapping, Sequence
from typing import Any

from arise import __version__
from arise.analyze.analysis import Analysis, main_way
from arise.analyze.behaviours import AnalysedAttempt, Evidence
from arise.analyze.found import Triage
from arise.analyze.gaps import Gap
from arise.analyze.quotes import rendered
from arise.analyze.statistics import Agreement, Rate
from arise.text.secrets import redact
from arise.types import Turn

FORMAT, VERSION = "arise-analysis", 1


def facts_of(
    analysis: Analysis,
    paths: Sequence[str],
    fields: Mapping[str, str] | None = None,
    tasks: str = "",
    outcomes: str = "",
) -> dict[str, Any]:
    """Return the whole analysis as JSON values; `fields`, `tasks` and `outcomes` are needed to read the paths again."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "arise": __version__,
        "seed": analysis.seed,
        "paths": [redact(path) for path in paths],
        "map": dict(sorted((fields or {}).items())),
        "tasks": redact(tasks),
        "outcomes": redact(outcomes),
        "coverage": coverage_of(analysis),
        "pass_rate": rate_of(analysis.verdicts),
        "raw_pass_rate": rate_of(analysis.raw),
        "gaps": [gap_of(gap, analysis) for gap in analysis.gaps],
        "attempts": len(analysis.attempts),
    }


def coverage_of(analysis: Analysis) -> dict[str, Any]:
    """Return how many attempts were counted and how many were not."""
    coverage, triage = analysis.coverage, analysis.triage
    judge = analysis.judge
    return {
        "found": coverage.found,
        "parsed": coverage.read,
        "formats": dict(sorted(coverage.forms.items())),
        "duplicates": coverage.duplicates,
        "skipped": [
            {"reason": redact(reason), "count": count, "example": redact(coverage.examples[reason])}
            for reason, count in sorted(coverage.skipped.items(), key=lambda item: (-item[1], item[0]))
        ],
        "unrecognised_files": dict(sorted(coverage.unrecognised.items())),
        "unrecognised_fields": dict(sorted(coverage.fields.items())),
        "outcome_known": analysis.outcome_known,
        "outcome_rows": coverage.outcome_rows,
        "outcome_rows_used": coverage.outcome_rows_used,
        "triage": {kind.value: triage[kind] for kind in Triage},
        "triage_reasons": _reasons(analysis.attempts),
        "partial_rewards": sum(
            attempt.passed is False and 0 < (attempt.reward or 0.0) < 1 for attempt in analysis.attempts
        ),
        "without_turns": sum(not attempt.turns for attempt in analysis.attempts),
        "analysed": sum(bool(attempt.turns) for attempt in analysis.attempts),
        "models": _counted(attempt.model for attempt in analysis.attempts),
        "notes": dict(analysis.notes),
        "detector_faults": dict(sorted(analysis.faults.items())),
        "findings_without_quote": analysis.quotes_missing,
        "judge": None if judge is None else _judge(judge),
    }


def _judge(judge: Any) -> dict[str, Any]:
    from dataclasses import asdict

    found = asdict(judge)
    found["unjudged"] = dict(sorted(found["unjudged"].items()))
    return found


def _reasons(attempts: Sequence[AnalysedAttempt]) -> list[dict[str, Any]]:
    """Count the reasons why outcomes are not valid verdicts, most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for attempt in attempts:
        if attempt.triage is not Triage.VALID and attempt.reason:
            key = (attempt.triage.value, attempt.reason.partition(":")[0][:80])
            counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"triage": triage, "reason": reason, "count": count} for (triage, reason), count in ordered[:12]]


def _counted(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name or "unknown"] = counts.get(name or "unknown", 0) + 1
    return dict(sorted(counts.items()))


def rate_of(rate: Rate) -> dict[str, Any]:
    """Return a rate and its 95 % interval as shares."""
    interval = rate.interval
    return {
        "count": rate.count,
        "total": rate.total,
        "rate": None if rate.value is None else round(rate.value, 6),
        "interval": None if interval is None else [round(bound, 6) for bound in interval],
    }


def gap_of(gap: Gap, analysis: Analysis) -> dict[str, Any]:
    """Return one behaviour with its numbers and quotes."""
    behaviour, name = gap.behaviour, gap.behaviour.id
    infinite = gap.odds == float("inf")
    return {
        "id": name,
        "name": behaviour.name,
        "habit": habit_of(gap, analysis),
        "capability": behaviour.capability.value,
        "issue_tag": behaviour.issue_tag,
        "kind": gap.kind.value,
        "criterion": behaviour.criterion,
        "applies": behaviour.condition,
        "rule": behaviour.rule,
        "skill": skill_of(gap, analysis),
        "in_failures": rate_of(gap.failures),
        "in_passes": rate_of(gap.passes),
        "overall": rate_of(gap.overall),
        "tasks": gap.tasks,
        "p": _rounded(gap.p),
        "q": _rounded(gap.q),
        "odds_ratio": "infinite" if infinite else _rounded(gap.odds),
        "strata": gap.strata,
        "informative_strata": gap.informative,
        "gain_points": round(gap.gain, 3),
        "ways": ways_of(name, analysis, behaviour.misses),
        "quotes": [quote_of(evidence) for evidence in analysis.evidence.get(name, ())],
        "quotes_in_passes": [quote_of(evidence) for evidence in analysis.contrast.get(name, ())],
    }


def ways_of(name: str, analysis: Analysis, misses: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the ways in which the behaviour was missed, in plain words, most frequent first."""
    counts = [(miss, count) for (behaviour, miss), count in analysis.misses.items() if behaviour == name]
    ordered = sorted(counts, key=lambda item: (-item[1], item[0]))
    return [{"what": misses[miss], "count": count} for miss, count in ordered if miss in misses]


def habit_of(gap: Gap, analysis: Analysis) -> str:
    """Return a headline for the gap: the most frequent way of missing the behaviour."""
    ways = ways_of(gap.behaviour.id, analysis, gap.behaviour.misses)
    said = ways[0]["what"] if ways else f"missed: {gap.behaviour.name}"
    return str(said[:1].upper() + said[1:])


def skill_of(gap: Gap, analysis: Analysis) -> str:
    """Return guidance against the most frequent way of failing."""
    return gap.behaviour.advice.get(main_way(gap.behaviour.id, analysis.misses), gap.behaviour.skill)


def quote_of(evidence: Evidence) -> dict[str, Any]:
    """Return a quote with its turn and the turns around it."""
    return {
        "id": evidence.id,
        "source": redact(evidence.source),
        "task": redact(evidence.task_id),
        "passed": evidence.passed,
        "turn": evidence.turn,
        "quote": evidence.quote,
        "why": evidence.detail,
        "instruction": evidence.instruction,
        "turns": [{"number": evidence.first + place} | turn_of(turn) for place, turn in enumerate(evidence.turns)],
    }


def turn_of(turn: Turn) -> dict[str, Any]:
    """Return a turn as JSON values; calls are written as text, the form that quotes are taken from."""
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": [{"tool": call.name, "call": rendered(call)} for call in turn.calls],
        "results": [{"text": seen.text, "error": seen.error} for seen in turn.observations],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def agreement_of(row: Agreement) -> dict[str, Any]:
    """Return the agreement of two raters as JSON values."""
    return {
        "both": row.both, "only_ours": row.ours, "only_labels": row.theirs, "neither": row.neither,
        "kappa": row.kappa, "precision": row.precision, "recall": row.recall,
    }  # fmt: skip
