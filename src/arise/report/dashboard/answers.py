"""From a request to its answer: a page as HTML, the table behind one of its charts as CSV, or what is wrong."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from arise.errors import AriseError
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page
from arise.report.dashboard.rendering import render


def catalogue_of(request: Request) -> Catalogue:
    """The runs this server shows."""
    found: Catalogue = request.app.state.catalogue
    return found


def run_page(request: Request, name: str, build: Callable[[Asked], Page], csv: str = "") -> Response:
    """One page of one run."""
    with catalogue_of(request).open(name) as asked:
        page = build(asked)
        return given(page, shell(request, asked), csv)


def given(page: Page, around: dict[str, Any], csv: str = "") -> Response:
    """A page as HTML, or one of its tables as CSV."""
    if not csv:
        return HTMLResponse(render(page, around))
    figure = page.figure(csv)
    if figure is None:
        names = ", ".join(figure.id for figure in page.figures)
        raise NotFound(f"no chart {csv!r} on this page; it has: {names}")
    content = figure.table.csv().encode("utf-8", "backslashreplace")
    name = {"Content-Disposition": f'attachment; filename="{figure.id}.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=name)


def shell(request: Request, asked: Asked | None = None) -> dict[str, Any]:
    """What stands around every page: which run, how far it is, and how to get a chart's table."""
    query = [(key, value) for key, value in parse_qsl(request.url.query) if key not in ("csv", "token")]
    around: dict[str, Any] = {
        "csv_link": lambda figure_id: f"{request.url.path}?{urlencode([*query, ('csv', figure_id)])}",
        "many": len(catalogue_of(request).runs()) > 1,
    }
    if asked:
        around["run"] = standing(asked)
    return around


def standing(asked: Asked) -> dict[str, Any]:
    """How far a run is."""
    committed = asked.run.committed()
    planned = asked.run.config().get("train", {}).get("iterations")
    return {"name": asked.name, "committed": committed, "planned": planned, "finished": committed == planned}


def add_errors(app: FastAPI) -> None:
    """Whatever is wrong reaches a person as a page that says so."""

    def answer(request: Request, status: int, what: str) -> Response:
        page = Page("error.html", what.partition("\n")[0][:120], "", (Fact(str(status), "status"),), (), {"what": what})
        return HTMLResponse(render(page, shell(request)), status)

    @app.exception_handler(NotFound)
    def not_found(request: Request, error: NotFound) -> Response:
        return answer(request, 404, str(error))

    @app.exception_handler(AriseError)
    def unreadable(request: Request, error: AriseError) -> Response:
        return answer(request, 409, str(error))

    @app.exception_handler(RequestValidationError)
    def misspelt(request: Request, error: RequestValidationError) -> Response:
        problems = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
        return answer(request, 422, "; ".join(problems))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return answer(request, error.status_code, "no such page" if error.status_code == 404 else str(error.detail))
