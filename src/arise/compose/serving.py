"""Serve a checkpoint through the endpoint, or a recording proxy for another server."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette

from arise.compose.registry import format_of
from arise.compose.trained import trained_engine
from arise.endpoint.app import create_app
from arise.endpoint.policy import Policy
from arise.endpoint.recording import Recorder
from arise.endpoint.serving import running
from arise.endpoint.sessions import CallLimits, Session, Sessions
from arise.endpoint.upstream import recording_app
from arise.errors import AriseError, Exit
from arise.report.dashboard.serving import listen, require_token

KEPT_CALLS = 1000
Opened = Callable[[str], None]


async def _serve(app: Starlette, host: str, port: int, opened: Opened) -> None:
    """Serve until cancelled; call `opened` with the base URL for clients."""
    listener = listen(host, port, "endpoint")
    bound = listener.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    async with running(app, listener):
        opened(f"http://{shown}:{bound}/v1")
        await asyncio.Event().wait()


async def serve_run(
    folder: Path,
    iteration: int | None,
    host: str,
    port: int,
    token: str,
    max_tokens: int,
    opened: Callable[[str, str], None],
) -> None:
    """Serve a checkpoint of a run with the sampling of its evaluations and without evolved skills.

    `opened` is called with the base URL and the name of the model.
    """
    require_token(host, token, "endpoint")
    async with trained_engine(folder, iteration) as (config, engine, at):
        sampling = config.evaluation
        model = f"{folder.resolve().name}-k{at:05d}"
        policy = Policy(engine, format_of(engine), model, sampling.temperature, sampling.top_p)
        session = Session(policy, CallLimits(0, max_tokens), "serve", config.train.seed, keep_calls=KEPT_CALLS)
        sessions = Sessions()
        if token:
            session.token = token
            sessions.add(session)
        else:
            sessions.anyone = session
        try:
            await _serve(create_app(sessions), host, port, lambda url: opened(url, model))
        finally:
            await session.close()


async def record(upstream: str, folder: Path, key_env: str, host: str, port: int, token: str, opened: Opened) -> None:
    """Forward chat completions to a server and store every conversation as a file in `folder`."""
    require_token(host, token, "endpoint")
    key = os.environ.get(key_env, "") if key_env else ""
    if key_env and not key:
        raise AriseError(
            "endpoint",
            Exit.CONFIG,
            f"the environment variable {key_env} is not set",
            "nothing was served",
            f"export {key_env}=..., or leave --key-env out to forward each client's key",
        )
    if not upstream.startswith(("http://", "https://")):
        remedy = "give it as http://HOST:PORT/v1"
        raise AriseError("endpoint", Exit.CONFIG, f"--upstream {upstream} is not a URL", "nothing was served", remedy)
    folder.mkdir(parents=True, exist_ok=True)
    async with recording_app(upstream, key, Recorder(folder), token) as app:
        await _serve(app, host, port, opened)
