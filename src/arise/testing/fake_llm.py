"""An OpenAI-compatible loopback server with scripted answers: latency, 429, 5xx, hangs, cuts, garbage.

It uses a real socket, so that time-outs, broken bodies and leaked connections are realistic.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self


@dataclass(frozen=True)
class Ask:
    """A received request, its time, and its number from 0."""

    number: int
    at: float
    body: dict[str, Any]
    path: str = ""
    key: str = ""
    """What the authorization header carries."""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @cached_property
    def data(self) -> dict[str, Any]:
        """Return the user message, which is a JSON object in every prompt of ARISE."""
        value = json.loads(self.user)
        if not isinstance(value, dict):
            raise ValueError("the user message is not a JSON object")
        return value


@dataclass(frozen=True)
class Say:
    """A completion after `delay` seconds."""

    text: str
    delay: float = 0.0
    model: str = ""
    fingerprint: str = ""
    finish: str = "stop"
    prompt_tokens: int = 1000
    completion_tokens: int = 100
    usage: bool = True
    cached_tokens: int = 0
    """Tokens of the prompt that a prompt cache had."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Tool calls: name and arguments of each."""


@dataclass(frozen=True)
class Status:
    """An HTTP error, with Retry-After if given."""

    code: int
    retry_after: float | str | None = None
    body: str = '{"error": {"message": "scripted"}}'
    delay: float = 0.0


@dataclass(frozen=True)
class Hang:
    """Headers and half a body, then silence until the client disconnects."""

    headers: bool = True


@dataclass(frozen=True)
class CutOff:
    """Half a body, then the connection closes."""


@dataclass(frozen=True)
class RawBody:
    """A 200 response with an arbitrary body, and more headers if given: `("content-encoding: gzip",)`."""

    body: bytes
    content_type: str = "application/json"
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wire:
    """Raw bytes including the status line: `start`, then `more` repeated `times`, each after `gap` seconds.

    The connection closes afterwards.
    """

    start: bytes
    more: bytes = b""
    times: int = 0
    gap: float = 0.0


PAGES = {"/props": {"default_generation_settings": {"n_ctx": 131_072}}}
"""The window of a server that states one, in the way of llama.cpp."""
Action = Say | Status | Hang | CutOff | RawBody | Wire
Script = Callable[[Ask], "Action | Awaitable[Action]"]


@dataclass
class FakeLLM:
    """`async with FakeLLM(always("...")) as fake:` serves `fake.base_url` and keeps every request in `fake.asks`."""

    script: Script
    latency: float = 0.0
    pages: Mapping[str, Any] = field(default_factory=lambda: PAGES)
    """What GET returns, by path: `{"/v1/models": {"data": [...]}}`; any other path is HTTP 404."""
    page_delay: float = 0.0
    """Seconds before any page is sent, as of a server that is busy with a reply."""
    asks: list[Ask] = field(default_factory=list)
    answers: list[tuple[float, Ask, Action]] = field(default_factory=list)
    open_connections: int = 0
    connections: int = 0

    async def __aenter__(self) -> Self:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open_connections += 1
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                method, path, key, body = request
                if method == "GET":
                    await asyncio.sleep(self.page_delay)
                    writer.write(self._page(path))
                    await writer.drain()
                elif not await self._answer(Ask(len(self.asks), time.monotonic(), body, path, key), reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open_connections -= 1
            self._tasks.discard(task)
            writer.close()

    def _page(self, path: str) -> bytes:
        found = self.pages.get(path)
        return _response(404, b"no such page") if found is None else _response(200, json.dumps(found).encode())

    async def _answer(self, ask: Ask, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Perform one action; return False if the connection must close."""
        self.asks.append(ask)
        result = self.script(ask)
        action = result if isinstance(result, Action) else await result
        await asyncio.sleep(self.latency + (action.delay if isinstance(action, Say | Status) else 0.0))
        self.answers.append((time.monotonic(), ask, action))
        match action:
            case Say():
                writer.write(_response(200, json.dumps(_completion(action, ask)).encode()))
            case Status():
                extra = "" if action.retry_after is None else f"retry-after: {action.retry_after}\r\n"
                writer.write(_response(action.code, action.body.encode(), extra=extra))
            case RawBody():
                extra = "".join(f"{header}\r\n" for header in action.headers)
                writer.write(_response(200, action.body, action.content_type, extra))
            case Wire():
                await _write_raw(action, writer)
                return False
            case Hang() | CutOff():
                whole = _response(200, json.dumps(_completion(Say("x" * 200), ask)).encode())
                if not (isinstance(action, Hang) and not action.headers):
                    writer.write(whole[: len(whole) - 100])
                await writer.drain()
                if isinstance(action, Hang):
                    await reader.read(1)
                return False
        await writer.drain()
        return True


@contextmanager
def in_thread(fake: FakeLLM) -> Iterator[FakeLLM]:
    """Serve from a separate thread, for a blocking client such as a command run in-process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(fake.__aenter__(), loop).result(10)
    try:
        yield fake
    finally:
        asyncio.run_coroutine_threadsafe(fake.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _write_raw(action: Wire, writer: asyncio.StreamWriter) -> None:
    writer.write(action.start)
    await writer.drain()
    for _ in range(action.times):
        await asyncio.sleep(action.gap)
        writer.write(action.more)
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str, str, dict[str, Any]] | None:
    """Return method, path, key and body of the next request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ", 2)
    return method, path, headers.get("authorization", "").removeprefix("Bearer "), json.loads(body) if body else {}


def _response(code: int, body: bytes, content_type: str = "application/json", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {code} Scripted\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


def _completion(say: Say, ask: Ask) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "prompt_tokens": say.prompt_tokens,
        "completion_tokens": say.completion_tokens,
        "total_tokens": say.prompt_tokens + say.completion_tokens,
    }
    if say.cached_tokens:
        usage["prompt_tokens_details"] = {"cached_tokens": say.cached_tokens}
    return {
        "id": f"fake-{ask.number}",
        "object": "chat.completion",
        "created": 0,
        "model": say.model or ask.model,
        "system_fingerprint": say.fingerprint or None,
        "choices": [
            {"index": 0, "message": _message(say, ask), "finish_reason": say.finish},
        ],
        **({"usage": usage} if say.usage else {}),
    }


def _message(say: Say, ask: Ask) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text}
    if say.calls:
        message["tool_calls"] = [
            {
                "id": f"fake{ask.number}_{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for n, (name, arguments) in enumerate(say.calls)
        ]
    return message
