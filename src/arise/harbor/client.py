"""The process that runs Harbor, and calls to it; one process serves many trials at a time."""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from arise.harbor.install import require
from arise.ports import SandboxLost
from arise.sandbox.owner import new_name
from arise.sandbox.programs import Program

START_SECONDS = 180.0
"""Importing Harbor takes seconds on an idle machine, more on a busy one."""
STOP_SECONDS = 60.0
LINE_BYTES = 1 << 26
_TAIL = 2000
Fields = dict[str, Any]


class HarborWorker:
    """`async with HarborWorker() as worker: answer = await worker.call("trial", config={...})`."""

    def __init__(self, python: Path | None = None, variables: Mapping[str, str] | None = None) -> None:
        self._python, self._variables = python, variables or {}
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Fields]] = {}
        self._folder = Path(tempfile.gettempdir(), new_name())
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self.version = ""
        """The version of Harbor."""

    @property
    def scratch(self) -> Path:
        """Return the folder in which trials are written; it is removed when the worker ends."""
        return self._folder / "trials"

    async def __aenter__(self) -> Self:
        python = self._python or require()
        self.scratch.mkdir(parents=True)
        self._folder.chmod(0o700)
        try:
            await self._start(python)
        except BaseException:
            await self.close()
            raise
        return self

    async def _start(self, python: Path) -> None:
        connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
        path = self._folder / "socket"
        server = await asyncio.start_unix_server(lambda r, w: connected.set_result((r, w)), path, limit=LINE_BYTES)
        variables = {**_environment(python), **self._variables}
        with (self._folder / "log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(python), "-P", str(Path(__file__).with_name("worker.py")), str(path),
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=variables,
                start_new_session=True,
            )  # fmt: skip
        ended = asyncio.create_task(self._process.wait())
        try:
            async with asyncio.timeout(START_SECONDS):
                await asyncio.wait((ended, connected), return_when=asyncio.FIRST_COMPLETED)
                if not connected.done():
                    raise SandboxLost(f"the Harbor worker did not start: {self._said()}")
                reader, self._writer = connected.result()
                self.version = str(json.loads(await reader.readline())["harbor"])
        except (TimeoutError, ValueError):
            raise SandboxLost(f"the Harbor worker did not answer: {self._said()}") from None
        finally:
            server.close()
            ended.cancel()
        self._reading = asyncio.create_task(self._read(reader))

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            return (self._folder / "log").read_text("utf-8", "replace").strip()[-_TAIL:] or "it said nothing"
        return "it said nothing"

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            found = json.loads(line)
            waiting = self._waiting.pop(found["id"], None)
            if waiting is None or waiting.done():
                continue
            if "error" in found:
                waiting.set_exception(SandboxLost(f"Harbor: {found['error']}"))
            else:
                waiting.set_result(found["answer"])
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(SandboxLost(f"the Harbor worker ended: {self._said()}"))
        self._waiting.clear()

    async def call(self, verb: str, **fields: Any) -> Fields:
        """Send one request and return its answer; raise SandboxLost if Harbor or the worker fails.

        Cancelling the call cancels the request.
        """
        if self._writer is None or self._reading is None or self._reading.done():
            raise SandboxLost("the Harbor worker is not running")
        number = next(self._numbers)
        waiting: asyncio.Future[Fields] = asyncio.Future()
        self._waiting[number] = waiting
        self._send({"id": number, "verb": verb, **fields})
        try:
            return await waiting
        except asyncio.CancelledError:
            self._send({"id": next(self._numbers), "verb": "cancel", "of": number})
            raise

    def _send(self, value: Fields) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(value).encode() + b"\n")

    async def close(self) -> None:
        """End the worker, which stops its environments first; kill it if that takes too long."""
        if self._writer is not None:
            self._writer.close()
        if self._process is not None and self._process.returncode is None:
            try:
                async with asyncio.timeout(STOP_SECONDS if self._writer is not None else 0):
                    await self._process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, 9)
                await self._process.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _environment(python: Path) -> dict[str, str]:
    """Return the variables of the worker: those of this process, the engine's settings and its own programs first."""
    given = Program("podman").settings()
    own = {"PATH": f"{python.parent}:{given.get('PATH', '')}", "HARBOR_TELEMETRY": "off", "PYTHONUNBUFFERED": "1"}
    return {**given, **own}
