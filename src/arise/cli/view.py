"""`arise view`: the dashboard on this machine, or as one file. Heavy imports live inside the command."""

from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json

RUNS = Path("runs")
Runs = Annotated[
    list[Path] | None,
    typer.Argument(help="Run folders, or folders of runs; without any, those below runs/.", metavar="[RUN ...]"),
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
    as_json: AsJson = False,
) -> None:
    """Open the dashboard of one run or several, also of one that is still going on."""
    with one_message():
        import secrets

        from arise.report.dashboard.catalogue import Catalogue

        catalogue = Catalogue.of(runs or [RUNS])
        names = list(catalogue.runs())
        from arise.report.dashboard.serving import serve, write_export

        if export:
            write_export(catalogue, export)
            say_json({"file": str(export), "runs": names}) if as_json else say(f"{export} holds {', '.join(names)}")
            return

        def opened(address: str) -> None:
            if as_json:
                say_json({"address": address, "runs": names})
            else:
                say(f"dashboard of {', '.join(names)}\n{address}   (Ctrl-C ends it)")

        serve(catalogue, host, port, secrets.token_urlsafe(24) if token == "new" else token, allow_host or [], opened)
