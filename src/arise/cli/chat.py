"""`arise chat`: talk to a checkpoint of a run in the terminal. Heavy imports live inside the command."""

import sys
from collections.abc import Iterator
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
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Most tokens of one reply.")] = 512,
) -> None:
    """Talk to the policy of a run: each line of input is a message. No tool is offered and no skill shown."""
    with one_message():
        import asyncio

        from arise.compose.trained import chat as talk
        from arise.run.folder import require_run

        require_run(run)
        asyncio.run(talk(run, at, _lines(), say, max_tokens))


def _lines() -> Iterator[str]:
    interactive = sys.stdin.isatty()
    while True:
        if interactive:
            typer.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        yield line
