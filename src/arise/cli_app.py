"""The `arise` command and its parser. Heavy imports live inside the commands, so that `arise --help` stays fast."""

import time
from pathlib import Path
from typing import Annotated

import typer

from arise import (
    __version__,
    cli_compare,
    cli_doctor,
    cli_eval,
    cli_figures,
    cli_judge,
    cli_models,
    cli_pool,
    cli_sampler,
    cli_store,
    cli_tasks,
    cli_view,
)
from arise.cli_output import AsJson, RunFolder, one_message, say

app = typer.Typer(
    name="arise",
    help="Train agents on what they still get wrong.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(cli_models.app, name="models")
app.add_typer(cli_judge.app, name="judge")
app.add_typer(cli_tasks.app, name="tasks")
app.add_typer(cli_compare.app, name="compare")
app.command(epilog="Example: arise figures runs/both --out figures")(cli_figures.figures)
app.command(epilog="Example: arise tables runs/both --out tables")(cli_figures.tables)
app.add_typer(cli_pool.app, name="pool")
app.add_typer(cli_sampler.app, name="sampler")
cli_store.register(app)
cli_doctor.register(app)
cli_view.register(app)
cli_eval.register(app)

ConfigPaths = Annotated[
    list[Path] | None,
    typer.Argument(help="TOML files, later ones over earlier ones; without any, the paper's values."),
]
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


@app.command(epilog="Example: arise train configs/embedded.toml configs/methods/vade.toml --run-dir runs/vade")
def train(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Where the run is kept.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a policy; Ctrl-C leaves a run that `arise resume` continues."""
    with one_message():
        from arise.config_file import load_config
        from arise.run_folder import claim

        config = load_config(paths, overrides or [])
        folder = run_dir or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
        lock = claim(folder)
        from arise import cli_train

        cli_train.start(config, folder, lock, say, as_json)


@app.command(epilog="Example: arise resume runs/first")
def resume(
    run: RunFolder,
    add_budget: Annotated[float, typer.Option("--add-budget", min=0.0, help="Dollars on top of budget.max_usd.")] = 0.0,
    allow_judge_change: Annotated[
        list[str] | None, typer.Option("--allow-judge-change", help="A model that may take over as judge, by name.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--change", help="A field of config.toml that you edited, by name, e.g. optimizer.learning_rate."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run exactly where it was committed."""
    with one_message():
        from arise.run_folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise import cli_train

        cli_train.resume(run, lock, say, as_json, add_budget, allow_judge_change or [], change or [])


@app.command(epilog="Example: arise config configs/embedded.toml --set train.iterations=20")
def config(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the paper.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a configuration and print it in full."""
    import json

    import tomli_w

    from arise.config_file import differences, load_config

    with one_message():
        resolved = load_config(paths, overrides or [])
    values = differences(resolved) if changed else resolved.model_dump(exclude_none=True)
    typer.echo(json.dumps(values, indent=2) if as_json else tomli_w.dumps(values).rstrip())
