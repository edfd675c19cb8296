"""The routes of the dashboard; all of them are read-only."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from pydantic import BeforeValidator, Field

from arise.report.dashboard.attempt_view import StoredAttempt, open_rollout
from arise.report.dashboard.catalogue import summaries
from arise.report.dashboard.links import Links
from arise.report.dashboard.pages import (
    compare,
    health,
    judge,
    overview,
    pool,
    rollouts,
    rubric,
    sampler,
    tasks,
)
from arise.report.dashboard.pages import evaluation as evaluations
from arise.report.dashboard.pages import trajectory as one_rollout
from arise.report.dashboard.pages.page import Fact, Page
from arise.report.dashboard.responses import catalogue_of, given, run_page, shell
from arise.run.chunks import StoredRollout
from arise.run.listing import EXPLAINED, RunLine
from arise.types.codec import to_json

router = APIRouter()
LARGEST = 10**9
Name = Annotated[str, Path(max_length=200)]
Id = Annotated[str, Path(max_length=500)]
Csv = Annotated[str, Query(max_length=60, description="Give the table behind this chart instead, as CSV.")]
PageNumber = Annotated[int, Query(ge=1, le=100_000)]
Number = Annotated[
    Annotated[int, Field(ge=1, le=LARGEST)] | None, BeforeValidator(lambda given: given or None), Query()
]
"""An optional number; a form sends an empty one for a field left blank."""
Words = Annotated[str, Query(max_length=300)]
CapabilityName = Literal["", "Understanding", "Execution", "Verification", "Debugging", "Efficiency"]
StatusName = Literal["", "hidden", "shown", "retired", "stuck"]
VerdictName = Literal["", "pass", "fail", "not_applicable", "absent"]
OutcomeName = Literal["", "pass", "fail", "fault"]


@router.get("/")
def runs(request: Request) -> Response:
    """List all runs; redirect to a single one."""
    found = summaries(catalogue_of(request))
    if len(found) == 1 and not found[0].wrong:
        return RedirectResponse(Links(found[0].name).page(), 307)
    facts = [Fact(str(len(found)), "runs")]
    newest = sorted(found, key=lambda line: -(line.last_commit or 0.0))
    content = {"summaries": newest, "most": compare.MOST_RUNS, "href": _href, "explained": EXPLAINED}
    return given(Page("runs.html", "Runs", "runs", facts, (), content), shell(request))


def _href(summary: RunLine) -> str:
    return Links(summary.name).page()


@router.get("/runs/{run}")
def run_overview(request: Request, run: Name, csv: Csv = "") -> Response:
    """Show what is still wrong, what got worse and what improved."""
    return run_page(request, run, overview.build, csv)


@router.get("/runs/{run}/pool")
def run_pool(
    request: Request,
    run: Name,
    capability: CapabilityName = "",
    status: StatusName = "",
    page: PageNumber = 1,
    csv: Csv = "",
) -> Response:
    """Show the lives of rubrics."""
    return run_page(request, run, partial(pool.build, capability=capability, status=status, page=page), csv)


@router.get("/runs/{run}/pool/{rubric_id}")
def run_rubric(request: Request, run: Name, rubric_id: Id, verdict: VerdictName = "", csv: Csv = "") -> Response:
    """Show one rubric with its skill."""
    return run_page(request, run, partial(rubric.build, rubric_id=rubric_id, verdict=verdict), csv)


@router.get("/runs/{run}/sampler")
def run_sampler(request: Request, run: Name, iteration: Number = None, csv: Csv = "") -> Response:
    """Show which tasks are drawn and why."""
    return run_page(request, run, partial(sampler.build, iteration=iteration), csv)


@router.get("/runs/{run}/tasks")
def run_tasks(
    request: Request,
    run: Name,
    task_type: Words = "",
    order: Literal["rate", "groups", "name"] = "rate",
    page: PageNumber = 1,
    csv: Csv = "",
) -> Response:
    """List the tasks drawn so far."""
    return run_page(request, run, partial(tasks.build, task_type=task_type, order=order, page=page), csv)


@router.get("/runs/{run}/tasks/{task_id:path}")
def run_task(request: Request, run: Name, task_id: Id, csv: Csv = "") -> Response:
    """Show one task."""
    return run_page(request, run, partial(tasks.build_one, task_id=task_id), csv)


@router.get("/runs/{run}/rollouts")
def run_rollouts(
    request: Request,
    run: Name,
    outcome: OutcomeName = "",
    iteration: Number = None,
    task: Words = "",
    stop: Words = "",
    rubric: Words = "",
    verdict: Literal["", "pass", "fail"] = "",
    order: Literal["newest", "reward", "turns", "tokens", "advantage"] = "newest",
    page: PageNumber = 1,
    csv: Csv = "",
) -> Response:
    """List rollouts."""
    build = partial(
        rollouts.build,
        outcome=outcome,
        iteration=iteration,
        task=task,
        stop=stop,
        rubric=rubric,
        verdict=verdict,
        order=order,
        page=page,
    )
    return run_page(request, run, build, csv)


@router.get("/runs/{run}/rollouts/{rollout_id:path}")
def run_trajectory(
    request: Request,
    run: Name,
    rollout_id: Id,
    turn: Annotated[int, Query(ge=1, le=LARGEST)] = 1,
    part: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    csv: Csv = "",
) -> Response:
    """Show one rollout, turn by turn."""
    return run_page(request, run, partial(one_rollout.build, rollout_id=rollout_id, turn=turn, part=part), csv)


@router.get("/runs/{run}/raw/{rollout_id:path}")
def run_raw(request: Request, run: Name, rollout_id: Id) -> Response:
    """Stream a rollout as JSON Lines: its head, then one line per turn."""
    with catalogue_of(request).open(run) as asked:
        stored = open_rollout(asked, rollout_id).stored
    saved = {"Content-Disposition": 'attachment; filename="rollout.jsonl"'}
    return StreamingResponse(_lines(stored), media_type="application/jsonl", headers=saved)


def _lines(stored: StoredRollout | StoredAttempt) -> Iterator[str]:
    yield json.dumps(to_json(stored.rollout)) + "\n"
    for first in range(0, stored.turn_count, 100):
        yield "".join(json.dumps(to_json(turn)) + "\n" for turn in stored.turns(first, 100))


@router.get("/runs/{run}/judge")
def run_judge(request: Request, run: Name, csv: Csv = "") -> Response:
    """Show the judge and the cost of calls."""
    return run_page(request, run, judge.build, csv)


@router.get("/runs/{run}/evaluation")
def run_evaluation(
    request: Request, run: Name, evaluation: Words = "", task_type: Words = "", csv: Csv = ""
) -> Response:
    """Show the evaluations on held-out tasks."""
    return run_page(request, run, partial(evaluations.build, evaluation=evaluation, task_type=task_type), csv)


@router.get("/runs/{run}/health")
def run_health(request: Request, run: Name, csv: Csv = "") -> Response:
    """Show the state of the process."""
    return run_page(request, run, health.build, csv)


@router.get("/compare")
def compare_runs(
    request: Request,
    run: Annotated[list[str], Query(max_length=compare.MOST_RUNS)] = [],  # noqa: B006 - FastAPI copies it
    by: Literal["iteration", "rollouts", "cost"] = "iteration",
    csv: Csv = "",
) -> Response:
    """Compare up to six runs; by default the newest ones."""
    catalogue = catalogue_of(request)
    names = list(dict.fromkeys(run)) or [s.name for s in summaries(catalogue) if not s.wrong][-compare.MOST_RUNS :]
    with ExitStack() as stack:
        asked = [stack.enter_context(catalogue.open(name)) for name in names]
        page = compare.build(asked, by)
        return given(page, shell(request), csv)
