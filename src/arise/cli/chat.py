"""`arise chat`: talk to a checkpoint of a run in the terminal. Heavy imports stay inside the command."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import RunFolder, one_message, say

At = Annotated[
    int | None,
    typer.Option("--at", min=0, help="The checkpoint of this iteration, 0 for the start; the last by default."),
]


def chat(
    run: RunFolder,
    at: At = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Maximum tokens per reply.")] = 512,
    as_json: Annotated[bool, typer.Option("--json", help="Print each reply as one line of JSON.")] = False,
) -> None:
    """Chat with the policy of a run: each line of input is one message. The policy gets no tools and no skills."""
    with one_message():
        import asyncio

        from arise.run.folder import require_run

        require_run(run)
        asyncio.run(_talk(run, at, max_tokens, as_json))


async def _talk(run: Path, at: int | None, max_tokens: int, as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from arise.compose.trained import chat as answers

    async for answer in answers(run, at, _lines(), max_tokens):
        if as_json:
            typer.echo(json.dumps(asdict(answer)))
            continue
        note, thought = (f"({text})" if text else "" for text in (answer.note, answer.reasoning))
        cut = "" if answer.finish == "stop" else " ..."
        say("\n".join(part for part in (note, thought, answer.text + cut) if part))


def _lines() -> Iterator[str]:
    interactive = sys.stdin.isatty()
    while True:
        if interactive:
            typer.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        yield line
