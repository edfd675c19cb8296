"""Serve the dashboard, or write it into one file."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from arise.errors import AriseError, Exit
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.export import export
from arise.report.dashboard.guard import is_loopback
from arise.report.dashboard.request_deadline import RequestDeadline

SHORTEST_TOKEN = 16


def serve(
    catalogue: Catalogue, host: str, port: int, token: str, allowed: Sequence[str], opened: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C; require a token off loopback. Call `opened` with the address."""
    serve_app(lambda hosts: create_app(catalogue, hosts, token), host, port, token, allowed, opened)


def serve_app(
    make: Callable[[Sequence[str]], FastAPI],
    host: str,
    port: int,
    token: str,
    allowed: Sequence[str],
    opened: Callable[[str], None],
) -> None:
    """Serve the application that `make` creates for this machine's host names."""
    require_token(host, token)
    listener = listen(host, port)
    bound = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    app = make((*allowed, shown))
    opened(f"http://{shown}:{bound}/" + (f"?token={token}" if token else ""))
    try:
        server_of(app).run(sockets=[listener])
    finally:
        listener.close()


def server_of(app: FastAPI) -> uvicorn.Server:
    """Create the server: no access log, no web sockets, a deadline for incomplete requests."""
    settings = uvicorn.Config(
        app,
        http=RequestDeadline,
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        server_header=False,
        lifespan="off",
    )
    return uvicorn.Server(settings)


def require_token(host: str, token: str, area: str = "view") -> None:
    """Refuse an address that other machines can reach unless a long enough token protects it."""
    if is_loopback(host) or len(token) >= SHORTEST_TOKEN:
        return
    raise AriseError(
        area,
        Exit.CONFIG,
        f"--host {host} lets other machines in, and the token is {'too short' if token else 'missing'}",
        "nothing was served",
        f"add --token new, or one of {SHORTEST_TOKEN} characters or more, or leave --host out",
    )


def listen(host: str, port: int, area: str = "view") -> socket.socket:
    """Return a bound socket; raise an error with the reason if binding fails."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        raise AriseError(
            area, Exit.CONFIG, f"cannot listen on {host}:{port}: {error}", "nothing was served", "give another --port"
        ) from None
    return listener


def write_export(catalogue: Catalogue, path: Path) -> None:
    """Write the dashboard as one file."""
    content = export(catalogue).encode("utf-8", "backslashreplace")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise AriseError(
            "view", Exit.STORAGE, f"cannot write {path}: {error}", "no file was left", "give another --export"
        ) from None
