"""`arise view` for a folder that `arise analyze --out` wrote; uses the dashboard's request guard."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from arise.errors import AriseError, Exit
from arise.report.analysis.facts import FORMAT, VERSION
from arise.report.analysis.outputs import ATTEMPTS, DOCUMENT
from arise.report.analysis.page import page
from arise.report.dashboard.app import static
from arise.report.dashboard.guard import Guard
from arise.report.dashboard.serving import serve_app


def is_analysis(folder: Path) -> bool:
    """Return whether a folder contains an analysis."""
    return (folder / DOCUMENT).is_file()


def read_facts(folder: Path) -> dict[str, Any]:
    """Read the document of an analysis; refuse another format or version by name."""
    try:
        facts = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT or facts["version"] != VERSION:
            raise ValueError(f"format {facts['format']} version {facts['version']}, expected {FORMAT} {VERSION}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AriseError(
            "analysis", Exit.CONFIG, f"{folder / DOCUMENT} cannot be read: {error}", "nothing was read",
            "make it again: arise analyze PATH --out FOLDER",
        ) from None  # fmt: skip
    return dict(facts)


def stored_verdicts(folder: Path) -> dict[tuple[str, str], bool]:
    """Return whether each behaviour was present, by (source, behaviour), from the attempts of an analysis."""
    try:
        rows = [json.loads(line) for line in (folder / ATTEMPTS).read_text(encoding="utf-8").splitlines()]
        return {(row["source"], name): bool(here) for row in rows for name, here in row["behaviours"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AriseError(
            "analysis", Exit.CONFIG, f"{folder / ATTEMPTS} cannot be read: {error}", "nothing was judged",
            "make it again: arise analyze PATH --out FOLDER",
        ) from None  # fmt: skip


def create_app(folder: Path, hosts: Sequence[str] = (), token: str = "") -> FastAPI:
    """Create the application that serves an analysis; the document is read again for every request."""
    app = FastAPI(title="ARISE", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_api_route("/", lambda: HTMLResponse(page(read_facts(folder), linked=True)), response_class=HTMLResponse)
    app.add_api_route("/static/{name}", static)
    app.add_middleware(Guard, hosts=tuple(hosts), token=token)
    return app


def serve(
    folder: Path, host: str, port: int, token: str, allowed: Sequence[str], opened: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, with the same options as the dashboard."""
    read_facts(folder)
    serve_app(lambda hosts: create_app(folder, hosts, token), host, port, token, allowed, opened)
