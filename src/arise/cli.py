"""The `arise` command. Heavy imports live inside the commands, so that `arise --help` stays fast."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from arise import __version__, cli_judge, cli_models, cli_tasks

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


RunFolder = Annotated[Path, typer.Argument(help="A run folder that `arise train` made.")]


@contextmanager
def _one_message() -> Iterator[None]:
    """Whatever is wrong reaches a person as one message and a fixed exit code, never as a traceback."""
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


@app.command(epilog="Example: arise train configs/embedded.toml --set train.seed=1 --run-dir runs/first")
def train(
    path: ConfigPath = None,
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Where the run is kept.")] = None,
) -> None:
    """Train a policy; Ctrl-C leaves a run that `arise resume` continues."""
    with _one_message():
        from arise.config_file import load_config

        config = load_config(path, overrides or [])
        from arise import cli_train

        folder = run_dir or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
        cli_train.start(config, folder, typer.echo)


@app.command(epilog="Example: arise resume runs/first --add-budget 5")
def resume(
    run: RunFolder,
    add_budget: Annotated[float, typer.Option("--add-budget", min=0.0, help="Dollars on top of budget.max_usd.")] = 0.0,
    allow_judge_change: Annotated[
        list[str] | None, typer.Option("--allow-judge-change", help="A model that may take over as judge, by name.")
    ] = None,
) -> None:
    """Continue a run exactly where it was committed."""
    with _one_message():
        from arise import cli_train

        cli_train.resume(run, typer.echo, add_budget, allow_judge_change or [])


@app.command("eval", epilog="Example: arise eval runs/first")
def evaluate(
    run: RunFolder,
    label: Annotated[str, typer.Option("--label", help="A name for this evaluation.")] = "eval",
) -> None:
    """Try the held-out tasks with a run's last checkpoint, without any evolved skill."""
    with _one_message():
        from arise import cli_train

        typer.echo(cli_train.evaluate_run(run, label, typer.echo).line())


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

    from arise.config_file import differences, load_config

    with _one_message():
        resolved = load_config(path, overrides or [])
    values = differences(resolved) if changed else resolved.model_dump()
    typer.echo(json.dumps(values, indent=2) if as_json else tomli_w.dumps(values).rstrip())


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
