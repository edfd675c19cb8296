"""`arise view` for a folder that `arise analyze --out` wrote; uses the dashboard's request guard and its parts."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import Response

from arise.report.analysis.folder import StoredAnalysis, open_analysis
from arise.report.analysis.pages import attempt as one_attempt
from arise.report.analysis.pages import attempts, gaps, rubric
from arise.report.analysis.pages.links import SECTIONS, AnalysisLinks
from arise.report.dashboard.app import static
from arise.report.dashboard.guard import Guard
from arise.report.dashboard.pages.page import Page
from arise.report.dashboard.rendering import compile_templates
from arise.report.dashboard.responses import add_errors, csv_link, given
from arise.report.dashboard.routes import LARGEST, Csv, Id, PageNumber, Words
from arise.report.dashboard.serving import serve_app


def create_app(folder: Path, hosts: Sequence[str] = (), token: str = "") -> FastAPI:
    """Create the application that serves an analysis; a new one in the folder shows at the next request."""
    app = FastAPI(title="ARISE", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.folder = folder
    compile_templates()
    for address, page in (
        ("/", first_page),
        ("/gaps/{behaviour}", one_behaviour),
        ("/attempts", all_attempts),
        ("/attempts/{attempt}", attempt_page),
    ):
        app.add_api_route(address, page)
    app.add_api_route("/static/{name}", static)
    add_errors(app, _around, "To the gaps")
    app.add_middleware(Guard, hosts=tuple(hosts), token=token)
    return app


def first_page(request: Request, csv: Csv = "") -> Response:
    """Show the gaps, the pass rate and what was read."""
    return _page(request, gaps.build, csv)


def one_behaviour(request: Request, behaviour: Id, csv: Csv = "") -> Response:
    """Show one behaviour with its quotes."""
    return _page(request, partial(rubric.build, behaviour=behaviour), csv)


def all_attempts(
    request: Request,
    behaviour: Words = "",
    outcome: Literal["", "failed", "passed", "none"] = "",
    task: Words = "",
    page: PageNumber = 1,
) -> Response:
    """List attempts."""
    return _page(request, partial(attempts.build, behaviour=behaviour, outcome=outcome, task=task, page=page))


def attempt_page(
    request: Request,
    attempt: Id,
    turn: Annotated[int, Query(ge=1, le=LARGEST)] = 1,
    part: Annotated[int | None, Query(ge=0, le=100_000)] = None,
) -> Response:
    """Show one attempt, turn by turn."""
    return _page(request, partial(one_attempt.build, attempt=attempt, turn=turn, part=part))


def _page(request: Request, build: Callable[[StoredAnalysis], Page], csv: str = "") -> Response:
    return given(build(open_analysis(request.app.state.folder)), _around(request), csv)


def _around(request: Request) -> dict[str, Any]:
    """Return the values shown on every page."""
    name = request.app.state.folder.absolute().name
    return {"links": AnalysisLinks(), "sections": SECTIONS, "name": name, "many": False, "csv_link": csv_link(request)}


def serve(
    folder: Path, host: str, port: int, token: str, allowed: Sequence[str], opened: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, with the same options as the dashboard."""
    open_analysis(folder)
    serve_app(lambda hosts: create_app(folder, hosts, token), host, port, token, allowed, opened)
