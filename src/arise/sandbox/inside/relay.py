"""Forward a TCP port on the sandbox's loopback to a unix socket, the only way out of a sandbox without network.

Executed only inside, by any Python 3.9 or later: `python3 relay.py SOCKET PORT`.
"""

from __future__ import annotations

import asyncio
import os
import sys

CHUNK = 65536


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until it ends, then shut down the other side."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):
        writer.close()


async def main(socket: str, port: int) -> None:
    """Listen, detach to the background, and forward every connection."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_unix_connection(socket)
        except OSError:
            writer.close()
            return
        try:
            await asyncio.gather(pump(reader, outer), pump(inner, writer))
        finally:
            outer.close()
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    print("ready", flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
