"""The dashboard application: pages, static files, the live stream, and the request guard."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse

from arise.errors import AriseError
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.guard import Guard
from arise.report.dashboard.pages.page import NotFound
from arise.report.dashboard.rendering import compile_templates
from arise.report.dashboard.responses import add_errors, catalogue_of
from arise.report.dashboard.routes import Name, router

STATIC = {
    "arise.css": "text/css",
    "live.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
POLL_SECONDS, BEAT_EVERY = 1.0, 15


def create_app(catalogue: Catalogue, hosts: Iterable[str] = (), token: str = "") -> FastAPI:
    """Create the dashboard of some runs; `hosts` are allowed besides the names of loopback."""
    app = FastAPI(title="ARISE", docs_url=None, redoc_url=None)
    app.state.catalogue = catalogue
    compile_templates()
    app.include_router(router)
    app.add_api_route("/static/{name}", static, include_in_schema=False)
    app.add_api_route("/runs/{run}/live", live, include_in_schema=False)
    add_errors(app)
    app.add_middleware(Guard, hosts=tuple(hosts), token=token)
    return app


def static(name: str) -> Response:
    """Respond with a static file."""
    if name not in STATIC:
        raise NotFound(f"no file {name!r} here")
    return Response(static_text(name), media_type=STATIC[name])


def static_text(name: str) -> str:
    """Return the content of a static file."""
    return files("arise.report.dashboard").joinpath("static", name).read_text(encoding="utf-8")


async def live(request: Request, run: Name) -> Response:
    """Send an event for every commit until the client disconnects."""
    await asyncio.to_thread(_committed, request, run)
    return StreamingResponse(_commits(request, run), media_type="text/event-stream")


async def _commits(request: Request, run: str) -> AsyncIterator[str]:
    told, beats = None, 0
    while not await request.is_disconnected():
        try:
            committed = await asyncio.to_thread(_committed, request, run)
        except (AriseError, NotFound):
            return
        if committed != told:
            told = committed
            yield f"event: commit\ndata: {json.dumps({'committed': committed})}\n\n"
        elif beats % BEAT_EVERY == 0:
            yield ": still here\n\n"
        beats += 1
        await asyncio.sleep(POLL_SECONDS)


def _committed(request: Request, run: str) -> int:
    with catalogue_of(request).open(run) as asked:
        return asked.run.committed()
