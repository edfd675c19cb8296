"""`arise analyze`: count recurring failures of an agent. Heavy imports stay inside the command."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, one_message, say, say_json
from arise.cli.session import OPENAI, BaseUrl, KeyEnv, PriceOption, price_of, session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arise.analyze.analysis import Analysis
    from arise.compose.analyze import Inputs
    from arise.compose.confirm import JudgePlan

Paths = Annotated[
    list[Path],
    typer.Argument(help="Files, folders or archives with trajectories, in any mix of formats.", metavar="PATH..."),
]
Against = Annotated[
    list[Path] | None,
    typer.Option(help="Compare with these attempts. Exit code: 0 better or equal, 1 worse, 2 cannot tell."),
]
Judge = Annotated[str, typer.Option("--judge", help="A model that confirms what the offline detectors flag.")]
Cap = Annotated[float | None, typer.Option("--max-usd", min=0.0, help="Hard cap for the judge; 0 for none.")]
AskAll = Annotated[bool, typer.Option("--ask-all", help="Ask about every behaviour, not only flagged ones.")]
Repeat = Annotated[int, typer.Option(min=1, help="Judge a sample of attempts this often, for agreement.")]
Tasks = Annotated[Path | None, typer.Option("--tasks", help="Task folders, for instructions by task id.")]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="FIELD=NAME,...", help="Names of fields in these files: outcome=reward,task=id."),
]
Outcomes = Annotated[
    str,
    typer.Option(
        "--outcomes",
        metavar="FILE",
        help="CSV or JSON with a task and an outcome per row, for trajectories without one; a name is looked up "
        "beside each trajectory.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option("--labels", help="CSV of human labels (source,behaviour,present): kappa, precision, recall."),
]
Out = Annotated[Path | None, typer.Option("--out", help="A folder for reports, pool and skills.")]


def analyze(
    paths: Paths,
    against: Against = None,
    judge: Judge = "",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    price: PriceOption = "",
    max_usd: Cap = None,
    ask_all: AskAll = False,
    repeat: Repeat = 1,
    tasks: Tasks = None,
    fields: Map = None,
    outcomes: Outcomes = "",
    labels: LabelsFile = None,
    out: Out = None,
    seed: Annotated[int, typer.Option(help="Seed for the choice among equally good quotes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find what an agent keeps getting wrong: behaviours in failures and in passes, with quotes. No model needed."""
    with one_message():
        from arise.compose.analyze import Inputs, analyze, field_map

        inputs = Inputs(field_map(fields or []), tasks, outcomes, seed, _progress)
        if against:
            raise typer.Exit(_compare(paths, against, inputs, as_json))
        if judge:
            asked = Asked(judge, base_url, api_key_env, price, max_usd, ask_all, repeat)
            found = judged(paths, inputs, asked, out, as_json)
        else:
            found = analyze(paths, inputs)
        _report(found, paths, inputs, out, labels, as_json)


def _progress(count: int) -> None:
    if count % 1000 == 0:
        say(f"read {count:,} attempts", err=True)


def _report(
    found: "Analysis",
    paths: "Sequence[Path]",
    inputs: "Inputs",
    out: Path | None,
    labels: Path | None,
    as_json: bool,
) -> None:
    from arise.errors import Exit

    facts, lines = report_of(found, paths, inputs, out, labels)
    if as_json:
        say_json(facts)
    else:
        say("\n".join(lines))
        if out is None and facts["gaps"]:
            say("\nadd --out FOLDER for the report with every quote in its context, the rubrics and the skills")
    if not found.attempts:
        raise typer.Exit(Exit.CONFIG)


def report_of(
    found: "Analysis", paths: "Sequence[Path]", inputs: "Inputs", out: Path | None, labels: Path | None
) -> tuple[dict[str, Any], list[str]]:
    """Write the files of an analysis and return its document and its screen."""
    from arise.report.analysis.facts import facts_of
    from arise.report.analysis.screen import screen

    facts = facts_of(found, [str(path) for path in paths], inputs.fields, str(inputs.tasks or ""), inputs.outcomes)
    agreed = _agreement(found, labels) if labels else {}
    if agreed:
        facts["labels"] = agreed
    if out is not None:
        from arise.report.analysis.outputs import write

        write(found, facts, out)
    shown = screen(facts, f"{out}/report.html, report.md, analysis.json" if out else "")
    return facts, [shown, *(["", *label_lines(agreed)] if agreed else [])]


def _agreement(found: "Analysis", labels: Path) -> dict[str, Any]:
    from arise.analyze.labels import agreement, read_labels, unmatched
    from arise.report.analysis.facts import agreement_of

    known = read_labels(labels)
    if lost := unmatched(found.attempts, known):
        say(f"labels     {len(lost):,} sources in {labels} name no attempt read here, e.g. {lost[0]}", err=True)
    return {name: agreement_of(row) for name, row in agreement(found.attempts, known).items()}


def label_lines(agreed: dict[str, Any]) -> list[str]:
    """Return a table of kappa, precision and recall per behaviour."""

    def shown(value: float | None) -> str:
        return "--" if value is None else f"{value:.2f}"

    return ["labels     behaviour  kappa  precision  recall"] + [
        f"           {name:<9}  {shown(row['kappa']):>5}  {shown(row['precision']):>9}  {shown(row['recall']):>6}"
        for name, row in agreed.items()
    ]


def _compare(paths: "Sequence[Path]", against: "Sequence[Path]", inputs: "Inputs", as_json: bool) -> int:
    from arise.compose.analyze import compare_sets
    from arise.report.analysis.versus import versus_facts, versus_screen

    found = compare_sets(paths, against, inputs)
    names = [", ".join(map(str, side)) for side in (paths, against)]
    say_json(versus_facts(found)) if as_json else say(versus_screen(found, *names))
    return found.finding.exit_code


@dataclass(frozen=True)
class Asked:
    """The judge options of the command line."""

    model: str
    base_url: str
    api_key_env: str
    price: str
    max_usd: float | None
    everything: bool
    repeat: int

    def plan(self) -> "JudgePlan":
        from arise.compose.confirm import JudgePlan
        from arise.config.llm import EndpointConfig

        if self.max_usd is None:
            raise typer.BadParameter("--judge needs --max-usd: say what it may cost at most, or 0 for no cap")
        endpoint = EndpointConfig(
            model=self.model, base_url=self.base_url, api_key_env=self.api_key_env, price=price_of(self.price),
            max_tokens=4096,
        )  # fmt: skip
        return JudgePlan(endpoint, self.max_usd, self.everything, self.repeat)


def judged(paths: "Sequence[Path]", inputs: "Inputs", asked: Asked, out: Path | None, as_json: bool) -> "Analysis":
    """Print the cost estimate, then run the judge; replies are cached in `out`, so a rerun pays only for new ones."""
    import asyncio

    from arise.cli.judge_report import JudgeProgress
    from arise.compose.analyze import behaviours
    from arise.compose.confirm import ATTEMPTS, FLIGHTS, confirm, estimate
    from arise.config.llm import CallsConfig
    from arise.llm.first_call.needs import expected as expected_calls
    from arise.llm.first_call.needs import judge_needs

    plan = asked.plan()
    expected = estimate(paths, inputs, plan)
    cap = f"cap ${plan.cap:.2f}" if plan.cap else "no cap"

    def tell(text: str) -> None:
        say(text, err=as_json)

    tell(f"judge {plan.endpoint.model}: {expected} expected, {cap}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    record = out / "judge-calls.db" if out is not None else ":memory:"
    calls = CallsConfig(when_down="task_only", breaker_after=20, concurrency=FLIGHTS, transport_attempts=ATTEMPTS)

    async def run() -> "Analysis":
        needs = judge_needs(len(behaviours()), plan.endpoint.context_tokens // 8)
        async with session(plan.endpoint, calls, "judge", record, plan.cap, needs, tell) as opened:

            def spent() -> int:
                return sum(total.nano_usd for total in opened.store.totals())

            number = expected.requests
            if number and not opened.served.unchecked:
                each = expected.tokens // number
                will = expected_calls(opened.served, plan.endpoint, FLIGHTS, opened.budget, number, each, 0)
                tell(f"expected: {will.time}")
            shown = JudgeProgress(number, tell)
            return await confirm(paths, inputs, plan, opened.client, spent, expected, shown)

    return asyncio.run(run())
