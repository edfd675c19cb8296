"""HTTP routes of the three dialects; the key is a bearer token, an x-api-key header or the path prefix /r/KEY."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from arise.endpoint.dialects import chat, messages, responses
from arise.endpoint.exchange import Answer, Ask, Body, Refused
from arise.endpoint.sessions import Sessions
from arise.endpoint.stream import KEEP_ALIVE_SECONDS, Event, named, streamed

Handler = Callable[[Request], Awaitable[Response]]
RETRY_HEADER = "x-stainless-retry-count"


@dataclass(frozen=True)
class Dialect:
    """The functions that read and write one wire format."""

    read: Callable[[Body], Ask]
    write: Callable[[Answer, Ask], dict[str, Any]]
    events: Callable[[Answer, Ask], Iterable[Event]]
    error: Callable[[Refused], dict[str, Any]]
    keep_alive: str
    full_window: Callable[[Refused], Iterable[Event]] | None = None
    """The events of a prompt that does not fit, if clients of a stream do not recognise the error by its status."""


CHAT = Dialect(chat.read, chat.write, chat.events, chat.error, chat.KEEP_ALIVE)
MESSAGES = Dialect(messages.read, messages.write, messages.events, messages.error, messages.KEEP_ALIVE)
RESPONSES = Dialect(
    responses.read, responses.write, responses.events, responses.error, responses.KEEP_ALIVE, responses.full_window
)


PREFIXES = ("/v1", "/r/{token}/v1", "/r/{token}")


def create_app(sessions: Sessions, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> Starlette:
    """Build the application for a set of sessions; no route returns the tokens of a rollout."""

    def completing(dialect: Dialect) -> Handler:
        async def complete(request: Request) -> Response:
            return await _complete(sessions, request, dialect, keep_alive_seconds)

        return complete

    async def count(request: Request) -> Response:
        return await _count(sessions, request)

    async def models(request: Request) -> Response:
        return _models(sessions, request)

    posts = {
        "/chat/completions": completing(CHAT),
        "/messages": completing(MESSAGES),
        "/responses": completing(RESPONSES),
        "/messages/count_tokens": count,
    }
    routes = [Route(prefix + path, posts[path], methods=["POST"]) for prefix in PREFIXES for path in posts]
    routes += [Route(f"{prefix}/models", models) for prefix in PREFIXES]
    return Starlette(routes=[*routes, Route("/healthz", _healthy)])


async def _healthy(request: Request) -> Response:  # noqa: ARG001
    return JSONResponse({"status": "ok"})


def key_of(request: Request) -> str:
    """Return the key of a request from its path, bearer token or x-api-key header."""
    bearer = request.headers.get("authorization", "")
    given = bearer[7:] if bearer[:7].lower() == "bearer " else ""
    return str(request.path_params.get("token") or request.headers.get("x-api-key") or given).strip()


async def _complete(sessions: Sessions, request: Request, dialect: Dialect, every: float) -> Response:
    try:
        session = sessions.find(key_of(request))
        body = await request.body()
        ask = dialect.read(_parsed(body))
    except Refused as refused:
        return _refusal(dialect, refused)
    marked = request.headers.get(RETRY_HEADER, "0").strip() not in ("", "0")
    if not ask.stream:
        try:
            answer = await session.answer(ask, body, marked)
        except Refused as refused:
            return _refusal(dialect, refused)
        return Response(_dumped(dialect.write(answer, ask)), media_type="application/json")
    waiting = asyncio.ensure_future(session.answer(ask, body, marked))
    try:
        # A refusal within this time is sent with its own status code; later, the stream has already begun.
        await asyncio.wait({waiting}, timeout=every)
        error = waiting.exception() if waiting.done() else None
        if isinstance(error, Refused) and not (error.kind == "context" and dialect.full_window):
            return _refusal(dialect, error)
    except BaseException:
        waiting.cancel()
        raise
    parts = streamed(waiting, lambda found: dialect.events(found, ask), _as_event(dialect), dialect.keep_alive, every)
    return StreamingResponse(parts, media_type="text/event-stream", headers={"cache-control": "no-cache"})


def _as_event(dialect: Dialect) -> Callable[[BaseException], Iterable[Event]]:
    def failed(error: BaseException) -> Iterable[Event]:
        if not isinstance(error, Refused):
            raise error
        if error.kind == "context" and dialect.full_window:
            return dialect.full_window(error)
        return [named("error", dialect.error(error))]

    return failed


async def _count(sessions: Sessions, request: Request) -> Response:
    """Count the tokens of a rendered request without recording it."""
    try:
        session = sessions.find(key_of(request))
        ask = messages.read(_parsed(await request.body()))
        return JSONResponse({"input_tokens": session.count(ask)})
    except Refused as refused:
        return _refusal(MESSAGES, refused)


def _models(sessions: Sessions, request: Request) -> Response:
    try:
        session = sessions.find(key_of(request))
    except Refused as refused:
        return _refusal(CHAT, refused)
    entry: dict[str, Any] = {"id": session.model, "object": "model", "created": 0, "owned_by": "arise"}
    if session.window is not None:
        entry["max_model_len"] = session.window  # vLLM's name for it, which clients know
    return JSONResponse({"object": "list", "data": [entry]})


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused("invalid", f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused("invalid", "the body must be a JSON object")
    return value


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _refusal(dialect: Dialect, refused: Refused) -> JSONResponse:
    return JSONResponse(dialect.error(refused), refused.status)
