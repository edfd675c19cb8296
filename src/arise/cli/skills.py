"""`arise skills`: measure whether skills help. Heavy imports stay inside the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.output import AsJson, one_message, say, say_json, table
from arise.cli.session import OPENAI, BaseUrl, KeyEnv, MaxUsd, Model, PriceOption, price_of
from arise.text.numbers import difference, interval, points

if TYPE_CHECKING:
    from arise.compose.skills_test import Effect

app = typer.Typer(name="skills", help="Measure whether skills help.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="A folder of SKILL.md packages.", metavar="DIR")]
Tasks = Annotated[Path, typer.Option("--tasks", help="Task folders to try; not the ones the skills were mined from.")]
AgentName = Annotated[
    str,
    typer.Option(
        "--agent",
        help="arise, the built-in shell agent; tools, the one with native tool calls; a harness such as "
        "mini-swe-agent or pi (arise harness list); or package.module:Class.",
    ),
]
Attempts = Annotated[int, typer.Option(min=1, help="Attempts per task and arm.")]
Turns = Annotated[int, typer.Option(min=1, help="Maximum turns per attempt.")]
Out = Annotated[Path, typer.Option("--out", help="Where attempts and replies are kept; a second run continues there.")]


@app.callback()
def _root() -> None:
    pass


@app.command(
    "test", epilog="Example: arise skills test analysis/skills --tasks held-out --model gpt-4o-mini --max-usd 5"
)
def measure(
    skills: Folder,
    tasks: Tasks,
    model: Model,
    agent: AgentName = "arise",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    price: PriceOption = "",
    max_usd: MaxUsd = 0.0,
    attempts: Attempts = 1,
    turns: Turns = 30,
    out: Out = Path("skills-test"),
    as_json: AsJson = False,
) -> None:
    """Run the same tasks without skills, with each skill alone and with all: helps, harms, or cannot tell."""
    if ":" in agent and max_usd:
        raise typer.BadParameter("--max-usd cannot be kept for a class of yours, which calls the model itself")
    with one_message():
        from arise.compose.skills_test import HARNESSES, SkillsTest, limits_of, run_test
        from arise.config.llm import EndpointConfig

        if agent not in ("arise", "tools", *HARNESSES) and ":" not in agent:
            known = ", ".join(HARNESSES)
            what = f"name arise, tools, a harness ({known}), or a class of yours as package.module:Class"
            raise typer.BadParameter(f"--agent {agent}: {what}")
        endpoint = EndpointConfig(
            model=model, base_url=base_url, api_key_env=api_key_env, price=price_of(price), max_tokens=2048
        )
        wanted = SkillsTest(skills, tasks, endpoint, out, attempts, max_usd, limits_of(agent, turns))
        effects = run_test(wanted, lambda message: say(message, err=as_json))
        say_json(_facts(effects)) if as_json else say(_text(effects))


def _facts(effects: "list[Effect]") -> dict[str, Any]:
    from arise.report.analysis.versus import versus_facts

    base = versus_facts(effects[0].found)["passes"]["first"]
    kept = ("passes", "left_out", "minimum_detectable_difference")
    arms = [
        {"skills": effect.name, "verdict": effect.verdict, "usd": round(effect.usd, 6)}
        | {name: value for name, value in versus_facts(effect.found).items() if name in kept}
        for effect in effects[1:]
    ]
    return {"without_skills": base, "usd_without": round(effects[0].usd, 6), "arms": arms}


def _text(effects: "list[Effect]") -> str:
    from arise.report.analysis.facts import rate_of
    from arise.report.analysis.screen import percent

    rows = [["skills", "pass rate", "difference", "better", "worse", "p", "cost now", "verdict"]]
    for effect in effects:
        passes = effect.found.passes
        low, high = passes.interval or (0.0, 0.0)
        first = effect is effects[0]
        spread = "no task differs" if low == high else interval(low, high, signed=True)
        change = "" if first else f"{difference(passes.difference or 0)} ({spread})"
        counts = ["", "", ""] if first else [str(passes.better), str(passes.worse), f"{passes.p:.2g}"]
        rate = percent(rate_of(passes.ours))
        rows.append([effect.name, rate, change, *counts, f"${effect.usd:.4f}", "" if first else effect.verdict])
    last = effects[-1].found
    notes = [f"left out: {count:,} {reason}" for reason, count in last.left_out.items()]
    if last.detectable is not None:
        notes.append(f"differences below {points(last.detectable)} points would mostly go unnoticed here")
    return "\n".join([table(rows, right=frozenset({3, 4, 5, 6})), *notes])
