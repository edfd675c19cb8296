"""Output shared by all commands: `--json`, one message per error, and control characters of run text escaped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from arise.text.escape import visible

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder that `arise train` made.", metavar="RUN")]
ConfigPaths = Annotated[
    list[Path] | None,
    typer.Argument(
        help="TOML files, later ones over earlier ones; without any, arise.toml of this folder, or the paper's values."
    ),
]
PROJECT_FILE = Path("arise.toml")
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Change one value: section.key=value.")]


def config_files(paths: list[Path] | None) -> list[Path]:
    """Return the configuration files of a command line; without any, the project file of this folder if it exists."""
    return paths or ([PROJECT_FILE] if PROJECT_FILE.is_file() else [])


def default_command(name: str) -> type[TyperGroup]:
    """Return a group in which `arise GROUP ARGUMENTS` is `arise GROUP NAME ARGUMENTS`."""

    class WithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            empty = not (self.no_args_is_help or ctx.resilient_parsing)  # shell completion lists all commands
            missing = args[0] not in {*self.commands, "-h", "--help"} if args else empty
            args = [name, *args] if missing else args
            return super().parse_args(ctx, args)

    return WithDefault


def say(text: str, err: bool = False) -> None:
    """Print text with its control characters escaped."""
    typer.echo(visible(text), err=err)


def say_json(value: Any) -> None:
    """Print a value as JSON."""
    import json

    typer.echo(json.dumps(value, indent=2))


@contextmanager
def one_message() -> Iterator[None]:
    """Report expected errors as one message with a fixed exit code instead of a traceback."""
    from arise.errors import AriseError, Exit

    try:
        yield
    except AriseError as error:
        say(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
    except OSError as error:
        if error.filename is None:
            raise  # not about a path that the user could change
        what = f"{error.filename}: {error.strerror}"
        say(str(AriseError("storage", Exit.STORAGE, what, "the command ended", "name another path")), err=True)
        raise typer.Exit(Exit.STORAGE) from None
    except ValueError as error:
        from arise.config.file import ConfigError

        if not isinstance(error, ConfigError):
            raise
        say(str(error), err=True)
        raise typer.Exit(Exit.CONFIG) from None


def table(rows: list[list[str]], right: frozenset[int] = frozenset()) -> str:
    """Return rows as an aligned text table; columns in `right` are right-aligned."""
    rows = [[visible(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[n].rjust(width) if n in right else row[n].ljust(width) for n, width in enumerate(widths)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
