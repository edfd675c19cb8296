"""An HTTP proxy on the host that is the only way out of a sandbox with a list of allowed hosts."""

import asyncio
import contextlib
import ipaddress
from collections.abc import Sequence
from typing import Self
from urllib.parse import urlsplit

from arise.sandbox.reach import carry

HEAD_BYTES = 64 * 1024
VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def allows(hosts: Sequence[str], host: str) -> bool:
    """Return whether a host matches a list of names, `*.names`, addresses and networks."""
    host = host.strip("[]").rstrip(".").lower()
    for entry in (entry.strip().rstrip(".").lower() for entry in hosts):
        if entry == host or (entry.startswith("*.") and host.endswith(entry[1:])):
            return True
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
    return False


class Proxy:
    """Forward requests and tunnels to allowed hosts — `async with Proxy(["example.org"]) as proxy: proxy.url`."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self.hosts = tuple(hosts)
        self.refused: list[str] = []
        """Hosts to which a connection was refused."""
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Return its address on the host's loopback."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> Self:
        """Start listening."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES)
        return self

    def close(self) -> None:
        """Stop accepting connections."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, version = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
            if method == "CONNECT":
                host, _, port = target.rpartition(":")
                await self._carry(host, int(port), b"", reader, writer)
            else:
                parts = urlsplit(target)
                path = parts._replace(scheme="", netloc="").geturl() or "/"
                rest = b"\r\n".join(
                    line
                    for line in head.split(b"\r\n")[1:]
                    if not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))
                )
                first = f"{method} {path} {version}\r\nConnection: close\r\n".encode("latin-1") + rest
                await self._carry(parts.hostname or "", parts.port or 80, first, reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, OSError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        finally:
            writer.close()

    async def _carry(
        self, host: str, port: int, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not allows(self.hosts, host):
            self.refused.append(host)
            writer.write(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\nnot in the task's allowed_hosts\n")
            return
        far_reader, far_writer = await asyncio.open_connection(host.strip("[]"), port)
        try:
            if first:
                far_writer.write(first)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))
        finally:
            far_writer.close()
