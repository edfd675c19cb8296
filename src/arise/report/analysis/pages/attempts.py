"""The attempts of an analysis, by outcome, behaviour and task."""

from arise.report.analysis.folder import AttemptLine, StoredAnalysis
from arise.report.analysis.pages.parts import LINKS, outcome_of
from arise.report.dashboard.charts import Link, Table
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.pages.page import Fact, Page
from arise.text.numbers import amount

ON_PAGE = 60
OUTCOMES = ("", "failed", "passed", "none")
_PASSED = {"failed": False, "passed": True, "none": None}
COLUMNS = ("attempt", "task", "outcome", "turns", "seen", "reward", "format", "outcome from")


def build(analysis: StoredAnalysis, behaviour: str = "", outcome: str = "", task: str = "", page: int = 1) -> Page:
    """Build one page of attempts."""
    found = [
        line
        for line in analysis.attempts
        if (not behaviour or line.behaviours.get(behaviour))
        and (not outcome or line.passed is _PASSED[outcome])
        and (not task or task.lower() in line.task.lower())
    ]
    start = (page - 1) * ON_PAGE
    content = {
        "table": Table(COLUMNS, [_row(line) for line in found[start : start + ON_PAGE]]),
        "behaviours": [(gap["id"], gap["habit"]) for gap in analysis.facts["gaps"]],
        "outcomes": OUTCOMES,
        "behaviour": behaviour,
        "outcome": outcome,
        "task": task,
        "page_number": page,
        "pages": max(1, -(-len(found) // ON_PAGE)),
        "address": lambda number: LINKS.attempts(behaviour=behaviour, outcome=outcome, task=task, page=number),
    }
    facts = [Fact(amount(len(found)), "attempts", f"of {amount(len(analysis.attempts))}")]
    return Page("analysis_attempts.html", "Attempts", "attempts", facts, (), content)


def _row(line: AttemptLine) -> tuple[Cell, ...]:
    return (
        Link(line.source, LINKS.trajectory(line.id)),
        line.task,
        outcome_of(line),
        line.turns,
        sum(line.behaviours.values()),
        line.reward,
        line.form,
        line.reason,
    )
