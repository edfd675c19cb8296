"""The folder that `arise analyze --out` writes: reports, the pool, skills, and cases for `arise judge check`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from arise.analyze.analysis import Analysis
from arise.analyze.behaviours import AnalysedAttempt
from arise.analyze.gaps import Gap, Kind
from arise.errors import AriseError, Exit
from arise.report.analysis.facts import rate_of, skill_of
from arise.report.analysis.markdown import markdown
from arise.report.analysis.page import page
from arise.report.exports.skills import package, skill_name
from arise.run.lifecycle_file import FORMAT, VERSION
from arise.text.secrets import redact
from arise.types import Rubric
from arise.types.codec import to_json

DOCUMENT, PAGE, REPORT, POOL, ATTEMPTS = "analysis.json", "report.html", "report.md", "pool.json", "attempts.jsonl"
STANDING = (Kind.ASSOCIATED,)
"""Kinds of gaps that become skills."""
MEASURABLE = (Kind.ASSOCIATED, Kind.SUSPECTED)
"""Kinds of gaps that become rubrics of the pool."""


def write(analysis: Analysis, facts: dict[str, Any], out: Path) -> list[Path]:
    """Write all files; the same analysis produces the same bytes."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        written = [
            _put(out / DOCUMENT, json.dumps(facts, indent=1, ensure_ascii=False) + "\n"),
            _put(out / REPORT, markdown(facts)),
            _put(out / PAGE, page(facts)),
            _put(out / ATTEMPTS, "".join(_line(attempt) for attempt in analysis.attempts)),
        ]
        rubrics = {gap.behaviour.id: rubric_of(gap, number) for number, gap in enumerate(_of(analysis, MEASURABLE), 1)}
        if rubrics:
            written.append(_put(out / POOL, json.dumps(pool_of(analysis, rubrics), indent=1) + "\n"))
        for gap in _of(analysis, STANDING):
            rubric = rubrics[gap.behaviour.id]
            name = skill_name(rubric)
            target = out / "skills" / name
            target.mkdir(parents=True, exist_ok=True)
            written.append(_put(target / "SKILL.md", package(name, rubric, skill_of(gap, analysis), _metadata(gap))))
    except OSError as error:
        raise AriseError(
            "storage", Exit.STORAGE, f"cannot write to {out}: {error.strerror or error}",
            "the reports are not complete; the trajectories are untouched", "give another folder with --out",
        ) from None  # fmt: skip
    return written


def _of(analysis: Analysis, kinds: Iterable[Kind]) -> list[Gap]:
    return [gap for gap in analysis.gaps if gap.kind in kinds]


def _put(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
    return path


def _line(attempt: AnalysedAttempt) -> str:
    row = {
        "source": redact(attempt.source),
        "format": attempt.form,
        "task": redact(attempt.task_id),
        "checksum": attempt.checksum,
        "group": attempt.group,
        "model": attempt.model,
        "triage": attempt.triage.value,
        "passed": attempt.passed,
        "reward": attempt.reward,
        "reason": attempt.reason,
        "turns": attempt.turns,
        "behaviours": {name: attempt.present[name] for name in sorted(attempt.present)},
        "turn_of": {name: attempt.places[name] for name in sorted(attempt.places)},
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


def rubric_of(gap: Gap, number: int) -> Rubric:
    """Return the rubric of a behaviour with an id of the pool."""
    behaviour = gap.behaviour
    return Rubric(
        f"r{number:03d}", behaviour.criterion, behaviour.issue_tag, behaviour.capability, behaviour.condition,
        behaviour.rule,
    )  # fmt: skip


def pool_of(analysis: Analysis, rubrics: dict[str, Rubric]) -> dict[str, Any]:
    """Return a pool in the format of `arise pool export`, from which `pool.lifecycle` can start a run."""
    gaps = {gap.behaviour.id: gap for gap in analysis.gaps}
    pairs = [_pair(gaps[name], rubric, analysis) for name, rubric in rubrics.items()]
    return {"format": FORMAT, "version": VERSION, "run": "analyze", "iterations": 1, "pairs": pairs}


def _pair(gap: Gap, rubric: Rubric, analysis: Analysis) -> dict[str, Any]:
    missed, judged = gap.overall.count, gap.overall.total
    applicable = sum(gap.behaviour.id in attempt.present for attempt in analysis.attempts)
    return {
        "rubric": to_json(rubric),
        "skills": [{"revision": 0, "iteration": 1, "text": skill_of(gap, analysis)}],
        "born": 1,
        "retired": None,
        "status": "hidden",
        "stuck": False,
        "history": [],
        "verdicts": [
            {
                "iteration": 1, "shown": False, "pass": judged - missed, "fail": missed,
                "not_applicable": len(analysis.attempts) - applicable, "absent": 0,
            }
        ],
    }  # fmt: skip


def _metadata(gap: Gap) -> dict[str, str]:
    """Return the measurements to include in the skill's metadata."""
    return {
        "behaviour": gap.behaviour.id,
        "capability": gap.behaviour.capability.value,
        "missed-in-failures": _rate(rate_of(gap.failures)),
        "missed-in-passes": _rate(rate_of(gap.passes)),
        "tasks": str(gap.tasks),
        "compared": {"task": "within tasks", "group": "within groups", "none": "between tasks"}[gap.strata],
        "adjusted-p": f"{gap.q:.2g}" if gap.q is not None else "none",
        "tested": "no: arise skills test measures whether it helps",
    }


def _rate(rate: dict[str, Any]) -> str:
    return f"{rate['count']} of {rate['total']}"
