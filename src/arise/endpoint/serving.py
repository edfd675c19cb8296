"""Run the endpoint in this process, on a unix socket for sandboxes or on a TCP port."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from arise.endpoint.app import create_app
from arise.endpoint.sessions import Serves, Sessions

SOCKET = "endpoint.sock"


@dataclass(frozen=True)
class Endpoint:
    """A running endpoint: its address and its sessions."""

    socket: Path
    sessions: Sessions = field(default_factory=Sessions)

    @asynccontextmanager
    async def session(self, session: Serves) -> AsyncIterator[None]:
        """Accept a session's key while its rollout runs."""
        self.sessions.add(session)
        try:
            yield
        finally:
            await self.sessions.end(session)


class Server(uvicorn.Server):
    """A server that leaves signal handling to its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


def server_of(app: Starlette) -> Server:
    """Create a server without access log, web sockets or a body size limit."""
    settings = uvicorn.Config(
        app,
        ws="none",
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=1,
        server_header=False,
        lifespan="off",
    )
    return Server(settings)


@asynccontextmanager
async def running(app: Starlette, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application on a socket as a background task of this event loop."""
    server = server_of(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        await serving
        listener.close()


@asynccontextmanager
async def on_socket() -> AsyncIterator[Endpoint]:
    """Serve on a unix socket in a temporary folder; sandboxes bind-mount it by path."""
    with tempfile.TemporaryDirectory(prefix="arise-endpoint-") as folder:
        endpoint = Endpoint(Path(folder) / SOCKET)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(endpoint.socket))
        async with running(create_app(endpoint.sessions), listener):
            yield endpoint
