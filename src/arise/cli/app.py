"""The `arise` command and its parser. Heavy imports stay inside the commands to keep `arise --help` fast."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from arise import __version__
from arise.cli import (
    analyze,
    chat,
    compare,
    config,
    doctor,
    endpoint,
    engines,
    eval,
    figures,
    harbor,
    harness,
    init,
    judge,
    models,
    plan,
    pool,
    runs,
    sampler,
    skills,
    store,
    tasks,
    train,
    view,
)
from arise.cli.logs import LogLevel, configure

COMMANDS: dict[str, dict[str, typer.Typer | tuple[Callable[..., None], str]]] = {
    "Train": {
        "init": (init.init, "arise init my-project"),
        "doctor": (doctor.doctor, "arise doctor configs/embedded.toml"),
        "config": (config.config, "arise config configs/embedded.toml --set train.iterations=20"),
        "plan": (plan.plan, "arise plan configs/paper.toml --gpu h800 --gpus 32"),
        "train": (
            train.train,
            "arise train configs/embedded.toml configs/methods/vade.toml --run-dir runs/vade",
        ),
        "resume": (train.resume, "arise resume runs/first"),
    },
    "See what is still wrong": {
        "runs": runs.app,
        "view": (view.view, "arise view runs/first runs/second --port 8000"),
        "chat": (chat.chat, "arise chat runs/first"),
        "pool": pool.app,
        "sampler": sampler.app,
        "analyze": (analyze.analyze, "arise analyze runs/first --out analysis"),
    },
    "Measure": {
        "eval": (eval.evaluate, "arise eval runs/first --at 60 --attempts 3"),
        "guidance": (eval.guidance, "arise guidance runs/first --base --attempts 4"),
        "retention": (eval.retention, "arise retention runs/first"),
        "skills": skills.app,
        "judge": judge.app,
        "compare": compare.app,
    },
    "Publish and check": {
        "figures": (figures.figures, "arise figures runs/both --out figures"),
        "tables": (figures.tables, "arise tables runs/both --out tables"),
        "export": (store.export, "arise export runs/first --format skills --out my-skills"),
        "verify": (store.verify, "arise verify runs/first"),
        "serve": (endpoint.serve, "arise serve runs/first --at 40 --port 8000"),
    },
    "Prepare": {
        "tasks": tasks.app,
        "models": models.app,
        "engines": engines.app,
        "harness": harness.app,
        "harbor": harbor.app,
        "endpoint": (endpoint.endpoint, "arise endpoint --upstream http://127.0.0.1:8000/v1 --record captured"),
    },
}
"""Every command by panel of `arise --help`, ordered by use; a plain command has an example."""


class _InOrderOfUse(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return [name for panel in COMMANDS.values() for name in panel]


app = typer.Typer(
    name="arise",
    cls=_InOrderOfUse,
    help="Train agents on what they still get wrong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, epilog=f"Example: {_command[1]}", rich_help_panel=_panel)(_command[0])


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
