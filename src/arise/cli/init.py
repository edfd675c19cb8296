"""`arise init`: create a starter project."""

from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, one_message, say, say_json

TEMPLATE = Path(__file__).with_name("project")


def init(
    folder: Annotated[Path, typer.Argument(help="A new or an empty folder.", metavar="DIR")], as_json: AsJson = False
) -> None:
    """Write a configuration, two sample tasks and a custom agent into a folder, ready for `arise train`."""
    with one_message():
        import shlex
        import shutil

        _require_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
        written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        if as_json:
            say_json({"folder": str(folder), "files": written})
        else:
            say(f"{folder}: arise.toml, my_agent.py and two sample tasks; README.md explains them")
            say(f"next: cd {shlex.quote(str(folder))} && arise train")


def _require_empty(folder: Path) -> None:
    from arise.errors import AriseError, Exit

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = f"{folder} {'is not empty' if folder.is_dir() else 'is a file'}"
        raise AriseError("init", Exit.STORAGE, what, "nothing was written", "name a new or an empty folder")
