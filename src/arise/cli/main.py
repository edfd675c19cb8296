"""Entry point of the `arise` command; the parser is in `app.py`.

A command that writes to a run locks the run folder here, before the slow import of the parser. If many processes start
at once, all but one fail immediately.
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
    """Run the console script."""
    limit_spinning()
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


def limit_spinning() -> None:
    """Let idle OpenMP threads spin only briefly, unless the user has set how they wait; call this before torch loads.

    By default they spin for milliseconds, on cores that the sandboxes need. If they do not spin at all, an update takes
    half as long again on idle cores.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def written_by(words: Sequence[str]) -> Path | None:
    """Return the run folder that a command line writes to, or None if that is not certain before parsing."""
    if HELP & set(words):
        return None
    match _command(words):
        case ["train", *options]:
            return _run_dir(options)
        case [command, name, *_] if command in OF_A_RUN and (Path(name) / CONFIG_FILE).is_file():
            return Path(name)
    return None


def _command(words: Sequence[str]) -> Sequence[str]:
    """Return the command and its arguments, without the global options before it."""
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
