"""`arise eval`, `arise guidance` and `arise retention`: evaluate a run's policy, its base model or an endpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, RunFolder, one_message, say, say_json, table
from arise.cli.session import OPENAI, BaseUrl, KeyEnv, PriceOption, price_of
from arise.text.numbers import MISSING, decimal, signed

if TYPE_CHECKING:
    from arise.compose.evaluations import PolicyChoice
    from arise.compose.suites import SuiteWanted
    from arise.run.folder import RunLock

At = Annotated[int | None, typer.Option("--at", min=1, help="The checkpoint of this iteration; the last by default.")]
Base = Annotated[bool, typer.Option("--base", help="The model that the run started from.")]
Model = Annotated[str | None, typer.Option("--model", help="A model behind an endpoint instead of the run's own.")]
Tasks = Annotated[int | None, typer.Option("--tasks", min=1, help="Use only the first N held-out tasks.")]
Attempts = Annotated[int | None, typer.Option("--attempts", min=1, help="Attempts of each task; else as configured.")]
Tools = Annotated[
    bool, typer.Option("--tools", help="With --model: let it call tools, even if the run's own agent does not.")
]
Suite = Annotated[
    str | None, typer.Option("--suite", help="skillsbench, terminal-bench or a folder of tasks, 3 attempts each.")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="With --suite: requirements to ignore if unmet.")]
AgentName = Annotated[
    str, typer.Option("--agent", help="With --suite: kilo or another harness, or terminus-2; else the run's own.")
]
Environment = Annotated[
    str, typer.Option("--environment", help="With --agent terminus-2: an environment of Harbor, such as daytona.")
]
Label = Annotated[str | None, typer.Option("--label", help="A name for this evaluation.")]


def evaluate(
    run: RunFolder,
    at: At = None,
    base: Base = False,
    model: Model = None,
    base_url: BaseUrl = OPENAI,
    key_env: KeyEnv = "OPENAI_API_KEY",
    price: PriceOption = "",
    tools: Tools = False,
    tasks: Tasks = None,
    attempts: Attempts = None,
    label: Label = None,
    suite: Suite = None,
    ignore: Ignore = None,
    agent: AgentName = "",
    environment: Environment = "",
    as_json: AsJson = False,
) -> None:
    """Evaluate a checkpoint, the base model or a model at an endpoint on the held-out tasks, without evolved skills.

    With --suite, evaluate on a benchmark instead: every attempt is stored in a Harbor job folder in the run folder.
    Run the same command again to continue after an interruption.
    """
    _require_one(at, base, model)
    if (agent or environment) and suite is None:
        raise typer.BadParameter("--agent and --environment are for --suite: give it too")
    if tools and model is None:
        raise typer.BadParameter("--tools is for a model behind an endpoint: give --model too")
    with one_message():
        from arise.run.folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise.compose import evaluations

        policy = _policy(run, at, base, model, base_url, key_env, price, tools)
        if suite is not None:
            from arise.compose.suites import ATTEMPTS, SuiteWanted

            name = label or "-".join(part for part in (Path(suite).name, agent, policy.label) if part)
            asked = (attempts or ATTEMPTS, tasks, tuple(ignore or ()), agent, environment)
            _suite(run, lock, policy, SuiteWanted(suite, name, *asked), as_json)
            return
        wanted = evaluations.Wanted(label or policy.label, tasks, attempts)
        found = evaluations.evaluate(run, lock, policy, wanted, lambda message: say(message, err=as_json))
        say_json(found.facts()) if as_json else say(found.table())


def _suite(run: Path, lock: "RunLock", policy: "PolicyChoice", wanted: "SuiteWanted", as_json: bool) -> None:
    from arise.compose.suites import evaluate_suite
    from arise.evaluation.attempts import require_label

    require_label(wanted.label)
    found = evaluate_suite(run, lock, policy, wanted, lambda message: say(message, err=as_json))
    say_json(found.facts()) if as_json else say(found.table())


def guidance(
    run: RunFolder,
    at: At = None,
    base: Base = False,
    model: Model = None,
    base_url: BaseUrl = OPENAI,
    key_env: KeyEnv = "OPENAI_API_KEY",
    price: PriceOption = "",
    tasks: Tasks = None,
    attempts: Attempts = None,
    everything: Annotated[bool, typer.Option("--all", help="Retired skills too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure the effect of each skill of the pool on held-out tasks: without skills, with it alone, and with all."""
    _require_one(at, base, model)
    with one_message():
        from arise.run.folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise.compose import evaluations

        policy = _policy(run, at, base, model, base_url, key_env, price)
        wanted = evaluations.Wanted(policy.label, tasks, attempts)
        found = evaluations.guidance(run, lock, policy, wanted, everything, lambda message: say(message, err=as_json))
        say_json(found) if as_json else say(_guidance_table(found))


def _guidance_table(found: dict[str, Any]) -> str:
    head = ["rubric", "without", "with its skill", "difference", "with all", "tasks passed with it", "criterion"]
    rows = [
        [
            row["rubric"],
            *(_rate(row[name]) for name in ("without", "with_skill")),
            _difference(row["difference"]),
            *(_rate(row[name]) for name in ("with_all", "passed_with_skill")),
            row["criterion"],
        ]
        for row in found["behaviours"]
    ]
    passed = f"without skills {_rate(found['passed_without'])}, with all {_rate(found['passed_with_all'])}"
    notes = f"tasks passed: {passed}; {found['faults']} infrastructure faults left out"
    return f"{table([head, *rows])}\n{notes}\nrates in %, with the 95 % interval, of applicable attempts"


def _rate(facts: dict[str, Any]) -> str:
    if facts["rate"] is None:
        return f"{MISSING} of 0"
    low, high = (decimal(bound, 1) for bound in facts["interval"])
    return f"{decimal(facts['rate'], 1)} (95 % {low} to {high}) of {facts['evaluations']}"


def _difference(facts: dict[str, Any] | None) -> str:
    if facts is None:
        return MISSING
    low, high = (signed(bound, 1) for bound in facts["interval"])
    return f"{signed(facts['points'], 1)} (95 % {low} to {high})"


def _require_one(at: int | None, base: bool, model: str | None) -> None:
    if sum([at is not None, base, model is not None]) > 1:
        raise typer.BadParameter("--at, --base and --model name different policies: give one of them")


def _policy(
    run: Path,
    at: int | None,
    base: bool,
    model: str | None,
    base_url: str,
    key_env: str,
    price: str,
    tools: bool = False,
) -> "PolicyChoice":
    """Return the policy that the options select, by default the last checkpoint."""
    from arise.compose import evaluations

    if model is not None:
        return evaluations.PolicyChoice(
            endpoint=evaluations.endpoint_of(run, model, base_url, key_env, price_of(price), tools), tools=tools
        )
    return evaluations.PolicyChoice(0 if base else at or evaluations.last_iteration(run))


def retention(run: RunFolder, attempts: Attempts = None, as_json: AsJson = False) -> None:
    """Judge retired behaviours again at later checkpoints, without skills, on the tasks of their last window."""
    with one_message():
        from arise.run.folder import claim, require_run

        require_run(run)
        lock = claim(run)
        from arise.compose import evaluations
        from arise.evaluation.retention import table

        rows = evaluations.retention(run, lock, attempts or 1, lambda message: say(message, err=as_json))
        say_json(rows) if as_json else say("\n".join(table(rows)) or "no rubric was retired")
