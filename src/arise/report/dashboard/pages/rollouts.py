"""Rollouts: find an attempt by iteration, task or outcome."""

from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import share_rows
from arise.report.dashboard.charts.figure import Cell
from arise.report.dashboard.charts.palette import GREY
from arise.report.dashboard.links import Links
from arise.report.dashboard.pages.page import Asked, Fact, Page
from arise.run.numbering import k_of, rollout_name
from arise.run.rows import RolloutRow
from arise.text.numbers import amount

ROLLOUTS_ON_PAGE = 60
COLUMNS = (
    "rollout",
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


def build(asked: Asked, outcome: str = "", iteration: int | None = None, task: str = "", page: int = 1) -> Page:
    """Build one page of rollouts, newest first."""
    run = asked.run
    found = run.rollouts(
        outcome=outcome,
        k=None if iteration is None else k_of(iteration),
        task_id=task,
        limit=ROLLOUTS_ON_PAGE + 1,
        offset=(page - 1) * ROLLOUTS_ON_PAGE,
    )
    more, found = len(found) > ROLLOUTS_ON_PAGE, found[:ROLLOUTS_ON_PAGE]
    links = asked.links
    stops = run.stops()
    total = sum(count for _, count in stops)
    figure = Figure(
        "stops",
        "How attempts ended",
        share_rows(
            "how attempts ended", [(name.replace("_", " "), count, total) for name, count in stops], GREY, 1140.0
        ),
        Table(("ended by", "rollouts"), stops),
        "Everything here is the agent's doing; attempts that infrastructure ended carry a fault and no reward.",
        wide=True,
    )
    chosen = {"outcome": outcome, "iteration": iteration, "task": task}
    content = {
        "table": Table(COLUMNS, [_row(links, row) for row in found]),
        "outcomes": OUTCOMES,
        "page_number": page,
        "newer": links.rollouts(**chosen, page=page - 1) if page > 1 else "",
        "older": links.rollouts(**chosen, page=page + 1) if more else "",
        **chosen,
    }
    return Page("rollouts.html", "Rollouts", "rollouts", [Fact(amount(total), "rollouts")], [figure], content)


def _row(links: Links, row: RolloutRow) -> tuple[Cell, ...]:
    return (
        Link(rollout_name(row.id), links.trajectory(row.id)),
        row.iteration,
        Link(row.task_id, links.task(row.task_id)),
        {None: "no reward", 0: "fail", 1: "pass"}[row.success],
        row.reward,
        row.stop,
        row.turns,
        row.generated_tokens,
        row.advantage,
        row.task_advantage,
        row.rubric_advantage,
        row.fault,
    )
