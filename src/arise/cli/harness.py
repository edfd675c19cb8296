"""`arise harness`: existing agent harnesses as agents of a run. Heavy imports stay inside the commands."""

from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json, table

app = typer.Typer(help="List and install agent harnesses.", no_args_is_help=True)


@app.command("list", epilog="Example: arise harness list")
def list_harnesses(as_json: AsJson = False) -> None:
    """Show every harness, whether it is usable here, and how to install it."""
    with one_message():
        from dataclasses import asdict

        from arise.harnesses.install import status
        from arise.harnesses.spec import harness, names

        found = [status(name) for name in names()]
        if as_json:
            say_json([asdict(each) for each in found])
            return
        rows = [[each.name, "yes" if each.usable else "no", harness(each.name).about, each.remedy] for each in found]
        say(table([["harness", "usable", "what it is", "how to get it"], *rows]))


@app.command("install", epilog="Example: arise harness install mini-swe-agent")
def install_harness(
    name: Annotated[str, typer.Argument(help="A name that `arise harness list` shows.")], as_json: AsJson = False
) -> None:
    """Install a harness in the ARISE cache, isolated from other packages."""
    with one_message():
        from dataclasses import asdict

        from arise.harnesses.install import install

        done = install(name, lambda text: say(text, err=True))
        if as_json:
            say_json(asdict(done))
        else:
            say(f"{name} is ready: set agent.kind = {name!r}")
