"""The `arise` command. Heavy imports live inside the commands, so that `arise --help` stays fast."""

from pathlib import Path
from typing import Annotated

import typer

from arise import __version__

app = typer.Typer(
    name="arise",
    help="Train agents on what they still get wrong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CONFIG_ERROR = 2

ConfigPath = Annotated[Path | None, typer.Argument(help="A TOML file; without one, the paper's values.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Change one value: section.key=value.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"arise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: arise config configs/arise.toml --set train.iterations=20")
def config(
    path: ConfigPath = None,
    overrides: Overrides = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the paper.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of TOML.")] = False,
) -> None:
    """Check a configuration and print it in full."""
    import json

    import tomli_w

    from arise.config_file import ConfigError, differences, load_config

    try:
        resolved = load_config(path, overrides or [])
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(CONFIG_ERROR) from None
    values = differences(resolved) if changed else resolved.model_dump()
    typer.echo(json.dumps(values, indent=2) if as_json else tomli_w.dumps(values).rstrip())


def main() -> None:
    """Entry point of the console script."""
    app()
