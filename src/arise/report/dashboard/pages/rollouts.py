"""Rollouts: find an attempt by iteration, task, outcome, stop reason or rubric."""

from collections.abc import Sequence

from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import share_rows
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.palette import GREY
from arise.report.dashboard.links import Links
from arise.report.dashboard.pages.page import Asked, Fact, Page, brief
from arise.report.dashboard.pages.pool import label
from arise.run.numbering import k_of
from arise.run.rollout_queries import ORDERS
from arise.run.rows import RolloutRow
from arise.text.numbers import amount

ROLLOUTS_ON_PAGE = 60
COLUMNS = (
    "attempt",
    "iteration",
    "task",
    "outcome",
    "reward",
    "ended by",
    "turns",
    "tokens",
    "advantage",
    "task part",
    "rubric part",
    "fault",
)
OUTCOMES = ("", "pass", "fail", "fault")
VERDICTS = ("", "pass", "fail")


def build(
    asked: Asked,
    outcome: str = "",
    iteration: int | None = None,
    task: str = "",
    stop: str = "",
    rubric: str = "",
    verdict: str = "",
    order: str = "newest",
    page: int = 1,
) -> Page:
    """Build one page of rollouts."""
    run, links = asked.run, asked.links
    found = run.rollouts(
        outcome=outcome,
        k=None if iteration is None else k_of(iteration),
        task_id=task,
        stop=stop,
        rubric_id=rubric,
        verdict=verdict,
        order=order,
        limit=ROLLOUTS_ON_PAGE + 1,
        offset=(page - 1) * ROLLOUTS_ON_PAGE,
    )
    more, found = len(found) > ROLLOUTS_ON_PAGE, found[:ROLLOUTS_ON_PAGE]
    stops = run.stops()
    chosen: dict[str, str | int | None] = {"outcome": outcome, "iteration": iteration, "task": task, "stop": stop}
    chosen |= {"rubric": rubric, "verdict": verdict, "order": "" if order == "newest" else order}
    content = {
        "table": Table(COLUMNS, [_row(links, row) for row in found]),
        "outcomes": OUTCOMES,
        "verdicts": VERDICTS,
        "stops": [name for name, _ in stops],
        "rubrics": [(pair.rubric.id, label(pair.rubric.criteria_text)) for pair in run.pairs()],
        "orders": tuple(ORDERS),
        "page_number": page,
        "newer": links.rollouts(**chosen, page=page - 1) if page > 1 else "",
        "older": links.rollouts(**chosen, page=page + 1) if more else "",
        **chosen,
        "order": order,
    }
    facts = [Fact(amount(sum(count for _, count in stops)), "rollouts")]
    return Page("rollouts.html", "Rollouts", "rollouts", facts, [_stops(stops)], content)


def _stops(stops: Sequence[tuple[str, int]]) -> Figure:
    total = sum(count for _, count in stops)
    shares = [(name.replace("_", " "), count, total) for name, count in stops]
    return Figure(
        "stops",
        "How attempts ended",
        share_rows("how attempts ended", shares, GREY, 1140.0),
        Table(("ended by", "rollouts"), stops),
        "All of these ended by what the agent did. Attempts that infrastructure ended have a fault and no reward.",
        wide=True,
    )


def _row(links: Links, row: RolloutRow) -> tuple[Cell, ...]:
    return (
        Link(f"attempt {row.id.rpartition('/')[2]}", links.trajectory(row.id)),
        row.iteration,
        Link(brief(row.task_id), links.task(row.task_id)),
        {None: "no reward", 0: "fail", 1: "pass"}[row.success],
        row.reward,
        row.stop.replace("_", " "),
        row.turns,
        row.generated_tokens,
        row.advantage,
        row.task_advantage,
        row.rubric_advantage,
        row.fault,
    )
