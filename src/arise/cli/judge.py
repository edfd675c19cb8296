"""`arise judge`: check how reliable a judge is. Heavy imports stay inside the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.cli.output import AsJson, one_message, say
from arise.cli.rejudge import rejudge
from arise.cli.session import OPENAI, BaseUrl, Cost, KeyEnv, MaxUsd, Model, PriceOption, price_of, session
from arise.errors import Exit
from arise.text.numbers import percent

if TYPE_CHECKING:
    from arise.config.llm import EndpointConfig
    from arise.llm.cases import Cases
    from arise.llm.check import JudgeCheck

app = typer.Typer(name="judge", help="Look at the judge itself.", no_args_is_help=True)

CasesPath = Annotated[
    Path | None,
    typer.Argument(help="A run folder, a folder of `arise analyze`, or a file of rollouts; else shipped ones."),
]


app.command(epilog="Example: arise judge rejudge analysis --model gpt-4o --max-usd 5")(rejudge)


@app.callback()
def _root() -> None:
    pass


@app.command(epilog="Example: arise judge check runs/first --model gpt-4o-mini --repeat 5")
def check(
    cases: CasesPath = None,
    model: Model = "gpt-4o-mini",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    repeat: Annotated[int, typer.Option(min=1, help="How often each trajectory is judged.")] = 3,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of cases; the newest ones of a run.")] = 100,
    max_usd: MaxUsd = 0.0,
    price: PriceOption = "",
    as_json: AsJson = False,
) -> None:
    """Measure the agreement of a judge with itself, with the offline analyst and with labels, and its cost."""
    import asyncio

    from arise.config.llm import EndpointConfig
    from arise.llm.cases import CasesError

    with one_message():
        try:
            found = _cases(cases, limit)
        except CasesError as error:
            say(f"error[cases]  {error}", err=True)
            raise typer.Exit(Exit.CONFIG) from None
        endpoint = EndpointConfig(model=model, base_url=base_url, api_key_env=api_key_env, price=price_of(price))
        report, cost = asyncio.run(_check(found, endpoint, repeat, max_usd))
    say(_as_json(report, cost) if as_json else _as_text(report, cost, base_url))
    if report.verdicts == 0:
        raise typer.Exit(Exit.JUDGE)


def _cases(path: Path | None, limit: int) -> "Cases":
    from dataclasses import replace

    from arise.llm.cases import read_cases

    if path is not None and path.is_dir():
        from arise.compose.analysis_cases import cases_of_analysis, is_analysis
        from arise.llm.run_cases import cases_of_run

        if is_analysis(path):
            return cases_of_analysis(path, limit)
        return cases_of_run(path, limit)
    found = read_cases(path)
    return replace(found, rollouts=found.rollouts[:limit])


async def _check(found: "Cases", endpoint: "EndpointConfig", repeat: int, max_usd: float) -> "tuple[JudgeCheck, Cost]":
    from arise.compose.judges import reference_judge
    from arise.config.llm import CallsConfig, ModelJudge
    from arise.llm.check import check_judge
    from arise.llm.judge import LanguageModelJudge

    calls = CallsConfig(when_down="task_only", breaker_after=20)
    settings = ModelJudge(endpoint=endpoint, calls=calls)
    async with session(endpoint, calls, "judge", ":memory:", max_usd) as opened:
        report = await check_judge(
            lambda number: LanguageModelJudge(opened.client, settings, salt=f"check {number}"),
            found.rollouts,
            found.pool,
            repeat,
            reference=reference_judge(),
            labels=found.labels,
        )
        return report, opened.cost()


def _as_json(report: "JudgeCheck", cost: Cost) -> str:
    import json
    from dataclasses import asdict

    rates = {"valid_rate": report.valid_rate, "flip_rate": report.flip_rate}
    return json.dumps(asdict(report) | rates | {"doubts": report.doubts, "cost": asdict(cost)}, indent=2)


def _as_text(report: "JudgeCheck", cost: Cost, base_url: str) -> str:
    asked = report.cases * report.repeats * len(report.rubrics)
    reasons = ", ".join(f"{reason} ({count})" for reason, count in report.absent_reasons) or "none"
    lines = [
        f"judge     {report.judge} at {base_url}",
        f"cases     {report.cases} trajectories, {len(report.rubrics)} rubrics, {report.repeats} repeats",
        f"valid     {report.verdicts} of {asked} verdicts ({percent(report.valid_rate)}); absent: {reasons}",
        "self      " + _self_agreement(report),
        "analyst   " + _share(report.with_reference, "of majorities equal the offline analyst's verdicts"),
        "labels    " + _share(report.with_labels, "of majorities equal the labels"),
        f"cost      {cost}",
        f"so        {'; '.join(report.doubts) or 'good enough to judge a run'}",
        "",
        f"{'rubric':<10}{'verdicts':>10}{'absent':>10}{'flips':>10}",
    ]
    lines += [f"{r.rubric_id:<10}{r.verdicts:>10}{r.absent:>10}{r.flips:>10}" for r in report.rubrics[:20]]
    if len(report.rubrics) > 20:
        lines.append(f"... and {len(report.rubrics) - 20} more rubrics, see --json")
    return "\n".join(lines)


def _self_agreement(report: "JudgeCheck") -> str:
    if report.flip_rate is None:
        return "undefined: there is no verdict to compare"
    return (
        f"{percent(1 - report.flip_rate)} agree with the majority of their repeats, flips {percent(report.flip_rate)}"
    )


def _share(value: float | None, of_what: str) -> str:
    return "nothing to compare with" if value is None else f"{percent(value)} {of_what}"
