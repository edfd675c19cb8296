"""`arise train` and `arise resume`."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, ConfigPaths, Overrides, RunFolder, config_files, one_message, say


def began(what: str, as_json: bool) -> None:
    """Print what begins, before imports that take seconds."""
    say(json.dumps({"message": what}) if as_json else what)


def train(
    paths: ConfigPaths = None,
    overrides: Overrides = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Where the run is kept.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a policy; after Ctrl-C, `arise resume` continues the run."""
    with one_message():
        from arise.config.file import load_config
        from arise.run.folder import claim

        config = load_config(config_files(paths), overrides or [])
        folder = run_dir or Path("runs") / time.strftime("%Y%m%d-%H%M%S")
        lock = claim(folder)
        began(f"training {config.train.iterations} iterations in {folder}; Ctrl-C stops the run", as_json)
        from arise.compose import training

        training.start(config, folder, lock, say, as_json)


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
    """Continue a run from its last commit."""
    with one_message():
        from arise.run.folder import claim, require_run

        require_run(run)
        lock = claim(run)
        began(f"resuming {run}", as_json)
        from arise.compose import training

        training.resume(run, lock, say, as_json, add_budget, allow_judge_change or [], change or [])
