"""`arise config`: check a configuration and print it."""

from typing import Annotated

import typer

from arise.cli.output import AsJson, ConfigPaths, Overrides, config_files, one_message


def config(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the paper.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a configuration, including custom parts, and print it in full."""
    import json

    import tomli_w

    from arise.compose.imports import check_imports
    from arise.config.file import differences, load_config

    with one_message():
        resolved = load_config(config_files(paths), overrides or [])
        check_imports(resolved)
    values = differences(resolved) if changed else resolved.model_dump(exclude_none=True)
    typer.echo(json.dumps(values, indent=2) if as_json else tomli_w.dumps(values).rstrip())
