"""`arise view`: the dashboard on this machine, or as one file."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

RUNS = Path("runs")
Runs = Annotated[
    list[Path] | None, typer.Argument(help="Run folders, or folders of runs; without any, those below runs/.")
]


def view(
    runs: Runs = None,
    host: Annotated[str, typer.Option(help="Where to listen; anything but loopback needs --token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 7788,
    token: Annotated[str, typer.Option(help="Who opens the page must know it; `new` makes one.")] = "",
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Another name this machine may be called by.")
    ] = None,
    export: Annotated[Path | None, typer.Option("--export", help="Write one self-contained file and end.")] = None,
) -> None:
    """Open the dashboard of one run or several."""
    from arise.dashboard.catalogue import Catalogue
    from arise.dashboard.serving import serve, write_export

    catalogue = Catalogue.of(runs or [RUNS])
    if export:
        write_export(catalogue, export)
        typer.echo(f"{export} holds {', '.join(catalogue.runs())}")
        return
    given = secrets.token_urlsafe(24) if token == "new" else token
    serve(catalogue, host, port, given, allow_host or [], typer.echo)
