"""`arise eval` and `arise retention`: a run's policy, its base model or any endpoint on the same tasks."""

from typing import Annotated

import typer

from arise.cli_output import AsJson, RunFolder, one_message, say, say_json
from arise.cli_session import OPENAI, BaseUrl, KeyEnv

At = Annotated[int | None, typer.Option("--at", min=1, help="The checkpoint of this iteration; the last by default.")]
Base = Annotated[bool, typer.Option("--base", help="The model that the run started from.")]
Model = Annotated[str | None, typer.Option("--model", help="A model behind an endpoint instead of the run's own.")]
Tasks = Annotated[int | None, typer.Option("--tasks", min=1, help="Only the first so many held-out tasks.")]
Attempts = Annotated[int | None, typer.Option("--attempts", min=1, help="Attempts of each task; else as configured.")]
Label = Annotated[str | None, typer.Option("--label", help="A name for this evaluation.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the `arise` command."""
    app.command("eval", epilog="Example: arise eval runs/first --at 20 --attempts 3")(evaluate)
    app.command(epilog="Example: arise retention runs/first")(retention)


def evaluate(
    run: RunFolder,
    at: At = None,
    base: Base = False,
    model: Model = None,
    base_url: BaseUrl = OPENAI,
    key_env: KeyEnv = "OPENAI_API_KEY",
    tasks: Tasks = None,
    attempts: Attempts = None,
    label: Label = None,
    as_json: AsJson = False,
) -> None:
    """Try the held-out tasks, no evolved skill shown, with a checkpoint, the base model, or a model at an endpoint."""
    if sum([at is not None, base, model is not None]) > 1:
        raise typer.BadParameter("--at, --base and --model name different policies: give one of them")
    with one_message():
        from arise.run_folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise import evaluating

        last = evaluating.last_iteration(run)
        policy = evaluating.Policy(0 if base else at or last)
        if model is not None:
            policy = evaluating.Policy(endpoint=evaluating.endpoint_of(run, model, base_url, key_env))
        wanted = evaluating.Wanted(label or policy.label, tasks, attempts)
        found = evaluating.evaluate(run, lock, policy, wanted, lambda message: say(message, err=as_json))
        say_json(found.facts()) if as_json else say(found.table())


def retention(run: RunFolder, attempts: Attempts = None, as_json: AsJson = False) -> None:
    """Judge retired behaviours again at later checkpoints, unguided, on the tasks of their last window."""
    with one_message():
        from arise.run_folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise import evaluating
        from arise.evaluation.retention import table

        rows = evaluating.retention(run, lock, attempts or 1, lambda message: say(message, err=as_json))
        say_json(rows) if as_json else say("\n".join(table(rows)) or "no rubric was retired")
