"""`arise judge`: check how reliable a judge is. Heavy imports stay inside the command."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arise.cli.output import AsJson, one_message, say
from arise.cli.rejudge import rejudge
from arise.cli.session import OPENAI, BaseUrl, KeyEnv, MaxUsd, Model, PriceOption, price_of, session
from arise.errors import Exit

if TYPE_CHECKING:
    from arise.cli.judge_report import Checked
    from arise.config.llm import EndpointConfig
    from arise.llm.check.cases import Cases

app = typer.Typer(name="judge", help="Check how reliable a judge is, or judge an analysis again.", no_args_is_help=True)

CasesPath = Annotated[
    Path | None,
    typer.Argument(help="A run folder, a folder of `arise analyze`, or a file of rollouts; else shipped ones."),
]


app.command(epilog="Example: arise judge rejudge analysis --model gpt-4o --max-usd 5")(rejudge)


@app.callback()
def _root() -> None:
    pass


@app.command(epilog="Example: arise judge check runs/first --model gpt-4o-mini --votes 3 --other-model gpt-4.1-mini")
def check(
    cases: CasesPath = None,
    model: Model = "gpt-4o-mini",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    repeat: Annotated[int, typer.Option(min=1, help="How often each trajectory is judged.")] = 3,
    votes: Annotated[int, typer.Option(min=1, help="Measure what a majority of this many votes gains.")] = 1,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of cases; the newest ones of a run.")] = 100,
    max_usd: MaxUsd = 0.0,
    price: PriceOption = "",
    structured: Annotated[
        str, typer.Option(help="Shape of replies: auto, json_schema, grammar or off.", metavar="FORM")
    ] = "auto",
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest reply in tokens, reasoning included.")] = 8192,
    reasons: Annotated[bool, typer.Option("--reasons", help="Ask for reasons too, as judge.reasons does.")] = False,
    other_model: Annotated[str, typer.Option(help="A second judge, to compare side by side.")] = "",
    other_url: Annotated[str, typer.Option(help="Its server; by default the same.")] = "",
    other_key_env: Annotated[str, typer.Option(help="The variable with its key; by default the same.")] = "",
    other_price: Annotated[str, typer.Option(metavar="IN,OUT", help="Its price, as --price.")] = "",
    as_json: AsJson = False,
) -> None:
    """Measure a judge and advise: valid verdicts, agreement with itself, the offline analyst and labels, cost."""
    import asyncio

    from arise.cli import judge_report
    from arise.llm.check.cases import CasesError

    with one_message():
        try:
            found = _cases(cases, limit)
        except CasesError as error:
            say(f"error[cases]  {error}", err=True)
            raise typer.Exit(Exit.CONFIG) from None
        endpoint = _endpoint(model, base_url, api_key_env, price, structured, max_tokens)
        checked = [asyncio.run(_check(found, endpoint, max(repeat, votes), votes, max_usd, reasons))]
        if other_model:
            other = _endpoint(
                other_model, other_url or base_url, other_key_env or api_key_env, other_price, structured, max_tokens
            )
            checked.append(asyncio.run(_check(found, other, max(repeat, votes), votes, max_usd, reasons)))
    say(judge_report.as_json(checked) if as_json else judge_report.as_text(checked))
    if any(one.report.verdicts == 0 for one in checked):
        raise typer.Exit(Exit.JUDGE)


def _endpoint(
    model: str, base_url: str, key_env: str, price: str, structured: str, max_tokens: int
) -> "EndpointConfig":
    from pydantic import ValidationError

    from arise.config.llm import EndpointConfig

    try:
        return EndpointConfig.model_validate(
            {
                "model": model,
                "base_url": base_url,
                "api_key_env": key_env,
                "price": price_of(price),
                "structured": structured,
                "max_tokens": max_tokens,
            }
        )
    except ValidationError as error:
        raise typer.BadParameter(f"--{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}") from None


def _cases(path: Path | None, limit: int) -> "Cases":
    from dataclasses import replace

    from arise.llm.check.cases import read_cases

    if path is not None and path.is_dir():
        from arise.compose.analysis_cases import cases_of_analysis, is_analysis
        from arise.llm.check.run_cases import cases_of_run

        if is_analysis(path):
            return cases_of_analysis(path, limit)
        return cases_of_run(path, limit)
    found = read_cases(path)
    return replace(found, rollouts=found.rollouts[:limit])


async def _check(
    found: "Cases", endpoint: "EndpointConfig", repeat: int, votes: int, max_usd: float, reasons: bool
) -> "Checked":
    from arise.cli.judge_report import Checked, JudgeProgress
    from arise.compose.judges import reference_judge
    from arise.config.llm import CallsConfig, ModelJudge
    from arise.llm.check.check import check_judge
    from arise.llm.first_call.needs import cases_needs, expected
    from arise.llm.judge.judge import LanguageModelJudge

    calls = CallsConfig(when_down="task_only", breaker_after=20)
    needs, trace = cases_needs(found, endpoint)
    tell = partial(say, err=True)
    async with session(endpoint, calls, "judge", ":memory:", max_usd, needs, tell) as opened:
        settings = ModelJudge(endpoint=opened.client.endpoint, calls=calls, reasons=reasons)
        total = len(found.rollouts) * repeat
        batches = -(-len(found.pool) // settings.rubrics_per_call)
        size = min(len(found.pool), settings.rubrics_per_call)
        if not opened.served.unchecked:
            will = expected(opened.served, endpoint, calls.concurrency, opened.budget, total * batches, trace, size)
            tell(f"expected: {will}")
        report = await check_judge(
            lambda number: LanguageModelJudge(opened.client, settings, salt=f"check {number}"),
            found.rollouts,
            found.pool,
            repeat,
            reference=reference_judge(),
            labels=found.labels,
            votes=votes,
            progress=JudgeProgress(total, tell),
        )
        return Checked(report, opened.cost(), endpoint.base_url)
