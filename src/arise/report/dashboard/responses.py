"""From a request to its response: a page as HTML, a chart's table as CSV, or an error page."""

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
    """Return the runs that this server shows."""
    found: Catalogue = request.app.state.catalogue
    return found


def run_page(request: Request, name: str, build: Callable[[Asked], Page], csv: str = "") -> Response:
    """Respond with one page of one run."""
    with catalogue_of(request).open(name) as asked:
        page = build(asked)
        return given(page, shell(request, asked), csv)


def given(page: Page, around: dict[str, Any], csv: str = "") -> Response:
    """Respond with a page as HTML, or with one of its tables as CSV."""
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
    """Return the values shown on every page: the run, its progress, and links to the tables of charts."""
    around: dict[str, Any] = {"csv_link": csv_link(request), "many": len(catalogue_of(request).runs()) > 1}
    if asked:
        around["run"] = standing(asked)
    return around


def csv_link(request: Request) -> Callable[[str], str]:
    """Return the address of the table behind a chart of the page that a request asks for."""
    query = [(key, value) for key, value in parse_qsl(request.url.query) if key not in ("csv", "token")]
    return lambda figure_id: f"{request.url.path}?{urlencode([*query, ('csv', figure_id)])}"


def standing(asked: Asked) -> dict[str, Any]:
    """Return the progress of a run."""
    committed = asked.run.committed()
    planned = asked.run.config().get("train", {}).get("iterations")
    return {"name": asked.name, "committed": committed, "planned": planned, "finished": committed == planned}


def add_errors(app: FastAPI, around: Callable[[Request], dict[str, Any]] = shell, home: str = "To the runs") -> None:
    """Turn every error into a page, with a link to the first page named `home`."""

    def answer(request: Request, status: int, what: str) -> Response:
        content = {"what": what, "home": home}
        page = Page("error.html", what.partition("\n")[0][:120], "", (Fact(str(status), "status"),), (), content)
        return HTMLResponse(render(page, around(request)), status)

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
