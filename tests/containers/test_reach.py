"""Commands in an image without a network reach the policy's endpoint, and nothing else of the host."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from arise.types import Place
from tests.containers.conftest import pool_of

ASK = (
    "exec 3<>/dev/tcp/{host}/{port} || exit 7; printf 'GET /v1/models HTTP/1.0\\r\\n\\r\\n' >&3; "
    "timeout 10 cat <&3 | tail -n 1"
)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = (await reader.readline()).decode().split()
    writer.write(f"HTTP/1.0 200 OK\r\n\r\nanswer to {line[1]}\n".encode())
    await writer.drain()
    writer.close()


async def _other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.write(b"HTTP/1.0 200 OK\r\n\r\nanother service of the host\n")
    await writer.drain()
    writer.close()


def _url(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@asynccontextmanager
async def endpoints(folder: Path) -> AsyncIterator[tuple[str, str, str]]:
    """Serve the same answer on a unix socket and on a port of the host, and another one on a second port."""
    socket = folder / "endpoint.sock"
    local = await asyncio.start_unix_server(_answer, socket)
    port = await asyncio.start_server(_answer, "127.0.0.1", 0)
    other = await asyncio.start_server(_other, "127.0.0.1", 0)
    try:
        yield f"unix:{socket}", _url(port), _url(other)
    finally:
        local.close()
        port.close()
        other.close()


def ask(url: str) -> str:
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    return ASK.format(host=host, port=port)


@pytest.mark.parametrize("network", ["", "none", "endpoint", "allow:example.org", "public"])
def test_the_endpoint_is_reached_over_a_socket_and_over_http(
    kind: str, network: str, python_image: Path, tmp_path: Path
) -> None:
    async def body() -> None:
        async with endpoints(tmp_path) as (local, http, other), pool_of(kind) as pool:
            box = await pool.open(Place(dockerfile=python_image, network=network, storage_mb=64))
            try:
                reached = []
                for url in (local, http):
                    inside = await box.reach(url)
                    reached.append(inside)
                    assert await box.reach(url) == inside
                    done = await box.run(ask(inside), 20, user="nobody")
                    assert done.output.strip() == "answer to /v1/models", (url, done)
                for url in (http, other):
                    blocked = await box.run(ask(url), 20)
                    # A port inside can have the number of a port of the host: then the endpoint itself answers.
                    same_number = ask(url) in {ask(inside) for inside in reached}
                    assert "another service" not in blocked.output, blocked
                    assert blocked.exit_code == (0 if same_number else 7), blocked
            finally:
                await box.close()

    asyncio.run(body())


def test_a_mounted_folder_of_the_host_is_seen_and_cannot_be_written(
    kind: str, python_image: Path, tmp_path: Path
) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "run").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "tool" / "run").chmod(0o755)

    async def body() -> None:
        async with pool_of(kind) as pool:
            mounts = ((str(tmp_path / "tool"), "/run/arise/tool"),)
            box = await pool.open(Place(dockerfile=python_image, storage_mb=64, mounts=mounts))
            try:
                done = await box.run("/run/arise/tool/run; touch /run/arise/tool/x; ls /run/arise/tool", 20)
                said = done.output.splitlines()
                assert (said[0], said[-1]) == ("ran", "run"), done
            finally:
                await box.close()

    asyncio.run(body())
    assert [path.name for path in (tmp_path / "tool").iterdir()] == ["run"]
