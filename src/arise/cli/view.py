"""`arise view`: open the dashboard locally or export it as one file. Heavy imports stay inside the command."""

from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json

RUNS = Path("runs")
Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Run folders, folders of runs, or a folder of `arise analyze`; by default those below runs/.",
        metavar="[RUN ...]",
    ),
]


def view(
    runs: Runs = None,
    host: Annotated[str, typer.Option(help="Where to listen; anything but loopback needs --token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 7788,
    token: Annotated[str, typer.Option(help="Access token for the page; `new` generates one.")] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Another host name of this machine."),
    ] = None,
    export: Annotated[Path | None, typer.Option("--export", help="Write one self-contained file and exit.")] = None,
    as_json: AsJson = False,
) -> None:
    """Open the dashboard of one or more runs, including runs in progress."""
    with one_message():
        import secrets

        from arise.report.dashboard.catalogue import Catalogue

        secret = secrets.token_urlsafe(24) if token == "new" else token
        if runs and _analysis(runs, host, port, secret, allow_host or [], export, as_json):
            return
        catalogue = Catalogue.of(runs or [RUNS])
        names = list(catalogue.runs())
        from arise.report.dashboard.serving import serve, write_export

        if export:
            from arise.observe.waits import bars

            with bars():
                write_export(catalogue, export)
            say_json({"file": str(export), "runs": names}) if as_json else say(f"{export} holds {', '.join(names)}")
            return

        def opened(address: str) -> None:
            if as_json:
                say_json({"address": address, "runs": names})
            else:
                say(f"dashboard of {', '.join(names)}\n{address}   (Ctrl-C ends it)")

        serve(catalogue, host, port, secret, allow_host or [], opened)


def _analysis(
    folders: list[Path], host: str, port: int, token: str, allowed: list[str], export: Path | None, as_json: bool
) -> bool:
    """Open an output folder of `arise analyze`; return False if it is not one."""
    if not folders[0].is_dir():
        return False
    from arise.report.analysis.folder import is_analysis, read_facts
    from arise.report.analysis.page import page
    from arise.report.analysis.serving import serve

    if len(folders) > 1 or not is_analysis(folders[0]):
        return False
    if export:
        export.write_text(page(read_facts(folders[0])), encoding="utf-8", errors="backslashreplace")
        say_json({"file": str(export)}) if as_json else say(f"{export} holds the analysis {folders[0]}")
        return True

    def opened(address: str) -> None:
        say_json({"address": address}) if as_json else say(f"analysis {folders[0]}\n{address}   (Ctrl-C ends it)")

    serve(folders[0], host, port, token, allowed, opened)
    return True
