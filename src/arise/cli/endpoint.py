"""`arise serve` and `arise endpoint`: serve a policy over standard APIs. Heavy imports stay inside the commands."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from arise.cli.output import AsJson, RunFolder, one_message, say, say_json

Host = Annotated[str, typer.Option(help="Where to listen; anything but loopback needs --token.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
Token = Annotated[str, typer.Option(help="The API key that clients must send; `new` makes one.")]


def serve(
    run: RunFolder,
    at: Annotated[
        int | None,
        typer.Option("--at", min=0, help="The checkpoint of this iteration, 0 for the start; the last by default."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 7790,
    token: Token = "",
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Maximum tokens per answer.")] = 4096,
    as_json: AsJson = False,
) -> None:
    """Serve a trained checkpoint over OpenAI chat completions and responses, and Anthropic messages."""
    with one_message():
        from arise.compose.serving import serve_run
        from arise.run.folder import require_run

        require_run(run)
        key = _key(token)
        _until_interrupted(
            serve_run(run, at, host, port, key, max_tokens, lambda url, model: _opened(url, key, as_json, model))
        )


def endpoint(
    upstream: Annotated[str, typer.Option("--upstream", help="Base URL of an OpenAI-compatible server, with /v1.")],
    record: Annotated[Path, typer.Option("--record", help="A folder; each conversation becomes one JSON file.")],
    key_env: Annotated[
        str,
        typer.Option(
            "--key-env", help="Environment variable with the server's key; without it each client's key is forwarded."
        ),
    ] = "",
    host: Host = "127.0.0.1",
    port: Port = 7791,
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Record conversations of agents with a model: forward chat completions unchanged and store each conversation."""
    with one_message():
        from arise.compose.serving import record as recording

        key = _key(token)
        _until_interrupted(
            recording(upstream, record, key_env, host, port, key, lambda url: _opened(url, key, as_json))
        )


def _key(token: str) -> str:
    import secrets

    return secrets.token_urlsafe(24) if token == "new" else token


def _opened(url: str, key: str, as_json: bool, model: str | None = None) -> None:
    if as_json:
        say_json({"base_url": url, "api_key": key or None, "model": model})
    else:
        named = f"model:    {model}\n" if model else ""
        say(f"base URL: {url}\n{named}API key:  {key or 'any'}\nCtrl-C ends it")


def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    import asyncio
    import contextlib
    import signal

    async def whole() -> None:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(whole())
