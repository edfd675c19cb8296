"""The `arise` command and its parser. Heavy imports live inside the commands, so that `arise --help` stays fast."""

from typing import Annotated

import typer

from arise import __version__
from arise.cli import (
    analyze,
    chat,
    compare,
    config,
    doctor,
    eval,
    figures,
    judge,
    models,
    pool,
    sampler,
    skills,
    store,
    tasks,
    train,
    view,
)
from arise.cli.logs import LogLevel, configure

app = typer.Typer(
    name="arise",
    help="Train agents on what they still get wrong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(models.app, name="models")
app.add_typer(judge.app, name="judge")
app.add_typer(tasks.app, name="tasks")
app.add_typer(compare.app, name="compare")
app.command(epilog="Example: arise figures runs/both --out figures")(figures.figures)
app.command(epilog="Example: arise tables runs/both --out tables")(figures.tables)
app.add_typer(pool.app, name="pool")
app.add_typer(sampler.app, name="sampler")
app.add_typer(skills.app, name="skills")
train.register(app)
config.register(app)
store.register(app)
doctor.register(app)
view.register(app)
eval.register(app)
chat.register(app)
analyze.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"arise {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 - its callback acts on it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    log_level: Annotated[
        LogLevel,
        typer.Option("--log-level", envvar="ARISE_LOG_LEVEL", case_sensitive=False, help="What to log on stderr."),
    ] = LogLevel.WARNING,
) -> None:
    configure(log_level)
