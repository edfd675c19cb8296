"""`arise runs` and `arise runs rm`: list and delete run folders. Heavy imports stay inside the commands."""

from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, default_command, one_message, say, say_json, table

app = typer.Typer(
    cls=default_command("ls"), help="List runs and what is still wrong in each; `arise runs rm RUN` deletes one."
)


@app.command("ls", epilog="Example: arise runs ls runs")
def ls(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the run folders.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """List runs: state, held-out pass rate before and after, the weakest behaviour, and what got worse or improved."""
    with one_message():
        from arise.run.listing import COLUMNS, EXPLAINED, list_runs

        found = list_runs(folder)
        if as_json:
            say_json([run._asdict() for run in found])
            return
        if not found:
            say(f"no runs in {folder}; start one: arise train")
            return
        say(table([COLUMNS, *(run.cells() for run in found)], right=frozenset({5, 6, 7})))
        say(EXPLAINED)


@app.command("rm", epilog="Example: arise runs rm runs/first")
def rm(
    folders: Annotated[list[Path], typer.Argument(help="Run folders that `arise train` made.", metavar="RUN...")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete runs; refuse a run that is locked by a process and a folder that contains other files."""
    with one_message():
        from arise.run.folder import require_unlocked
        from arise.run.removal import remove, require_removable

        folders = list(dict.fromkeys(folders))
        for folder in folders:
            require_removable(folder)
            require_unlocked(folder)
        if not yes:
            names = ", ".join(map(str, folders))
            typer.confirm(f"Delete {names} with all checkpoints and records?", abort=True)
        for folder in folders:
            remove(folder)
        say_json({"deleted": [str(folder) for folder in folders]}) if as_json else say(
            "\n".join(f"{folder} is deleted" for folder in folders)
        )
