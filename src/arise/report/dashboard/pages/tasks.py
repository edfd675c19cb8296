"""Tasks: how often each was drawn and solved."""

from collections import defaultdict
from collections.abc import Sequence

from arise.report.dashboard.charts import Figure, Table
from arise.report.dashboard.charts.bars import share_rows
from arise.report.dashboard.charts.lines import Line, line_chart, sparkline
from arise.report.dashboard.charts.palette import BLUE, OUTCOME
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page, rate
from arise.report.dashboard.pages.sampler import slot_link
from arise.run.rows import TaskRow
from arise.run.why import why
from arise.text.numbers import amount, percent

TASKS_ON_PAGE = 60
ORDERS = ("rate", "groups", "name")


def build(asked: Asked, task_type: str = "", order: str = "rate", page: int = 1) -> Page:
    """Build the list of tasks."""
    found = asked.run.tasks()
    types = sorted({kind for task in found for kind in task.task_types})
    chosen = [task for task in found if not task_type or task_type in task.task_types]
    if order == "groups":
        chosen.sort(key=lambda task: -task.groups)
    elif order == "rate":
        chosen.sort(key=lambda task: (rate(task.successes, task.rewarded) or 0.0, -task.rewarded))
    pages = max(1, -(-len(chosen) // TASKS_ON_PAGE))
    page = min(page, pages)
    visible = chosen[(page - 1) * TASKS_ON_PAGE : page * TASKS_ON_PAGE]
    lines = []
    for task in visible:
        rates = [rate(group.successes, group.rewarded) for group in asked.run.groups(task_id=task.id, last=30)]
        lines.append((task, sparkline(f"pass rate of {task.id}", rates, BLUE) if len(rates) > 1 else ""))
    outcomes = {
        "never solved": sum(not task.successes for task in found),
        "solved at times": sum(0 < task.successes < task.rewarded for task in found),
        "always solved": sum(0 < task.rewarded == task.successes for task in found),
    }
    facts = [Fact(amount(len(found)), "tasks drawn so far"), *(Fact(amount(n), name) for name, n in outcomes.items())]
    content = {
        "lines": lines,
        "types": types,
        "task_type": task_type,
        "order": order,
        "orders": ORDERS,
        "page_number": page,
        "pages": pages,
    }
    return Page("tasks.html", "Tasks", "tasks", facts, [_by_type(found)], content)


def _by_type(tasks: Sequence[TaskRow]) -> Figure:
    """Draw pass rates by task type."""
    tried: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for task in tasks:
        for kind in task.task_types:
            tally = tried[kind]
            tally[0] += task.successes
            tally[1] += task.rewarded - task.successes
            tally[2] += 1
    kinds = sorted(tried)
    return Figure(
        "types",
        "Rollouts passed by task type",
        share_rows(
            "share of rollouts passed by task type", [(k, tried[k][0], sum(tried[k][:2])) for k in kinds], BLUE, 1140.0
        ),
        Table(
            ("task type", "tasks", "passed", "rollouts", "rate"),
            [(k, tried[k][2], tried[k][0], sum(tried[k][:2]), rate(tried[k][0], sum(tried[k][:2]))) for k in kinds],
        ),
        "A task with two types counts in both.",
        wide=True,
    )


def build_one(asked: Asked, task_id: str) -> Page:
    """Build the page of one task: its text, its groups, and why each was drawn."""
    task = asked.run.task(task_id)
    if task is None:
        raise NotFound(f"no task {task_id!r} was drawn in this run")
    groups = asked.run.groups(task_id=task_id)
    recent = groups[-25:]
    reasons = {g.k: [why(s.draw, s.mass) for s in asked.run.slots(g.k, g.slot)] for g in recent}
    told = {k: " ".join(map(str, found)) for k, found in reasons.items()}
    rows = [
        (slot_link(asked, g.k, g.slot), g.outcome, g.successes, g.rewarded, g.size, g.reward, told.get(g.k))
        for g in groups
    ]
    points = [(g.iteration, rate(g.successes, g.rewarded)) for g in groups]
    figures = [
        Figure(
            "history",
            "Pass rate of its groups",
            line_chart(
                "pass rate by iteration",
                [Line("pass rate", BLUE, points)],
                width=1140.0,
                percent=True,
                y_range=(0.0, 1.0),
            ),
            Table(("slot", "outcome", "passed", "with reward", "size", "mean reward", "why drawn"), rows),
            wide=True,
        )
    ]
    content = {
        "task": task,
        "groups": [(group, slot_link(asked, group.k, group.slot), reasons[group.k]) for group in reversed(recent)],
        "colours": OUTCOME,
    }
    facts = [
        Fact(str(task.groups), "group" if task.groups == 1 else "groups"),
        Fact(percent(rate(task.successes, task.rewarded)), "rollouts passed", f"{task.successes} of {task.rewarded}"),
    ]
    return Page("task.html", task_id, "tasks", facts, figures, content)
