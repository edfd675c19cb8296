"""Connect commands in a sandbox without network to one address of the host, and nothing else.

A short-lived helper creates the listening socket inside the sandbox's network namespace; this process then accepts its
connections and forwards them to the address. No process and no file of ARISE is needed inside.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import sys
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit, urlunsplit

from arise.ports import SandboxLost

SECONDS = 20.0
_CHUNK = 1 << 16
_LISTEN = """import socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
here.bind(("127.0.0.1", 0))
here.listen(128)
socket.send_fds(socket.socket(fileno=int(sys.argv[1])), [str(here.getsockname()[1]).encode()], [here.fileno()])
"""


async def listen_inside(pid: int) -> tuple[socket.socket, int]:
    """Return a socket that listens on loopback in the network namespace of a process, and its port there."""
    nsenter = shutil.which("nsenter")
    if nsenter is None:
        raise SandboxLost("nsenter is missing: install util-linux to let sandboxes reach the endpoint")
    ours, theirs = socket.socketpair()
    line = [nsenter, f"--net=/proc/{pid}/ns/net"]
    if os.geteuid():
        line += [f"--user=/proc/{pid}/ns/user", "--preserve-credentials"]
    with ours, theirs:
        process = await asyncio.create_subprocess_exec(
            *line, "--", sys.executable, "-I", "-S", "-c", _LISTEN, str(theirs.fileno()),
            pass_fds=[theirs.fileno()], stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                _, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise SandboxLost("the network of the sandbox did not answer") from None
        if process.returncode:
            raise SandboxLost(
                f"the network of the sandbox cannot be entered: {errors.decode('utf-8', 'replace')[-300:]}"
            )
        port, descriptors, _, _ = socket.recv_fds(ours, 16, 1)
    return socket.socket(fileno=descriptors[0]), int(port)


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward all data until end of file."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


@dataclass
class Doors:
    """The addresses that a sandbox can reach — `await Doors().open(pid, "http://127.0.0.1:8000/v1")`."""

    _servers: dict[str, tuple[asyncio.Server, str]] = field(default_factory=dict)

    async def open(self, pid: int, url: str) -> str:
        """Return the URL by which a process, and others in its namespace, reach `url`: http://... or unix:PATH."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "unix") or (parts.scheme == "http" and parts.hostname is None):
            raise SandboxLost(f"{url} cannot be reached from a sandbox: only http:// and unix: addresses can")
        key = parts.netloc or parts.path
        if key not in self._servers:
            listening, port = await listen_inside(pid)
            server = await asyncio.start_server(lambda r, w: _connect(parts, r, w), sock=listening)
            self._servers[key] = server, f"127.0.0.1:{port}"
        here = self._servers[key][1]
        return f"http://{here}" if parts.scheme == "unix" else urlunsplit(parts._replace(netloc=here))

    def close(self) -> None:
        """Stop accepting connections."""
        for server, _ in self._servers.values():
            server.close()
        self._servers.clear()


async def _connect(target: SplitResult, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward one connection in both directions until either side closes it."""
    try:
        if target.scheme == "unix":
            far_reader, far_writer = await asyncio.open_unix_connection(target.path)
        else:
            far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port or 80)
    except OSError:
        writer.close()
        return
    try:
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
    finally:
        far_writer.close()
        writer.close()
