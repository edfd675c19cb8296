"""The door of the `arise` command; the parser is in `app.py`.

A command that would write to a run takes hold of it here, before the command line is parsed in full: of many processes
that start at once all but one are turned away at once, and only one pays for the parser.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from arise.errors import AriseError
from arise.run.folder import CONFIG_FILE, claim_early, give_back
from arise.text.escape import visible

HELP = {"-h", "--help"}
OF_A_RUN = {"resume", "eval", "guidance", "retention"}


def main() -> None:
    """Entry point of the console script."""
    # Between two products OpenMP's threads would spin on cores that the sandboxes need.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    folder = written_by(sys.argv[1:])
    try:
        if folder is not None:
            claim_early(folder)
    except AriseError as error:
        print(visible(str(error)), file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        from arise.cli.app import app

        app()
    finally:
        give_back()


def written_by(words: Sequence[str]) -> Path | None:
    """The run folder that a command line certainly writes to; None leaves it all to the parser."""
    if HELP & set(words):
        return None
    match _command(words):
        case ["train", *options]:
            return _run_dir(options)
        case [command, name, *_] if command in OF_A_RUN and (Path(name) / CONFIG_FILE).is_file():
            return Path(name)
    return None


def _command(words: Sequence[str]) -> Sequence[str]:
    """The words from the command on, without the global options before it."""
    match words:
        case ["--log-level", _, *rest]:
            return rest
        case [first, *rest] if first.startswith("--log-level="):
            return rest
    return words


def _run_dir(options: Sequence[str]) -> Path | None:
    for word, after in zip(options, [*options[1:], ""], strict=True):
        name, given, value = word.partition("=")
        if name == "--run-dir":
            value = value if given else after
            return Path(value) if value else None
    return None


if __name__ == "__main__":
    main()
