"""`arise pool`: what became of a run's rubric-skill pairs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from arise.errors import AriseError

app = typer.Typer(help="A run's rubric-skill pairs.", no_args_is_help=True)


@app.command(epilog="Example: arise pool export runs/first --out lifecycle.json")
def export(
    run: Annotated[Path, typer.Argument(help="A run folder that `arise train` made.")],
    out: Annotated[Path | None, typer.Option("--out", help="The file to write; RUN/lifecycle.json by default.")] = None,
) -> None:
    """Write every pair ever created, every status over time and every verdict count as one JSON file."""
    from arise import lifecycle_file

    try:
        written = lifecycle_file.export(run, out)
    except AriseError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
    pairs = json.loads(written.read_text(encoding="utf-8"))["pairs"]
    retired = sum(pair["status"] == "retired" for pair in pairs)
    typer.echo(f"{written}: {len(pairs)} pairs, {retired} retired")
