"""Whatever is wrong reaches a person as one message and a fixed exit code, never as a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def one_message() -> Iterator[None]:
    """Around the body of a command."""
    from arise.config_file import ConfigError
    from arise.errors import AriseError, Exit

    try:
        yield
    except ConfigError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(Exit.CONFIG) from None
    except AriseError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
