"""`arise harbor`: install Harbor next to ARISE. Heavy imports stay inside the commands."""

from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json

app = typer.Typer(help="Install Harbor, for its environments and for Terminus-2.", no_args_is_help=True)


@app.command(epilog="Example: arise harbor install")
def install(
    python: Annotated[str, typer.Option("--python", help="A Python of version 3.12 or later; else one is found.")] = "",
    as_json: AsJson = False,
) -> None:
    """Install Harbor in the ARISE cache, with its own Python, because it needs version 3.12 or later."""
    with one_message():
        from dataclasses import asdict

        from arise.harbor.install import install as set_up

        done = set_up(lambda text: say(text, err=True), python)
        say_json(asdict(done)) if as_json else say(f"ready: {done.said}")


@app.command(epilog="Example: arise harbor status")
def status(as_json: AsJson = False) -> None:
    """Show whether Harbor is installed, and how to install it."""
    with one_message():
        from dataclasses import asdict

        from arise.harbor.install import status as look

        found = look()
        say_json(asdict(found)) if as_json else say(found.said + (f": {found.remedy}" if found.remedy else ""))
