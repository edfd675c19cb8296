"""`arise judge rejudge`: judge the attempts of an analysis again and compare. Heavy imports stay inside the command."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arise.cli.analyze import AskAll, Asked, LabelsFile, Map, Repeat, Tasks, judged, label_lines, report_of
from arise.cli.output import AsJson, one_message, say, say_json
from arise.cli.session import OPENAI, BaseUrl, KeyEnv, Model, PriceOption

if TYPE_CHECKING:
    from arise.analyze.analysis import Analysis

Folder = Annotated[Path, typer.Argument(help="A folder that `arise analyze --out` wrote.")]


def rejudge(
    folder: Folder,
    model: Model = "gpt-4o-mini",
    base_url: BaseUrl = OPENAI,
    api_key_env: KeyEnv = "OPENAI_API_KEY",
    price: PriceOption = "",
    max_usd: Annotated[float | None, typer.Option("--max-usd", min=0.0, help="Hard cap; 0 for none.")] = None,
    ask_all: AskAll = False,
    repeat: Repeat = 1,
    tasks: Tasks = None,
    fields: Map = None,
    labels: LabelsFile = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder for the new reports; the old ones stay.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge the attempts of an analysis with another model and say which findings it shares with the stored ones."""
    with one_message():
        from arise.compose.analysis_cases import inputs_of
        from arise.compose.analyze import field_map
        from arise.report.analysis.folder import read_facts, stored_verdicts

        before = read_facts(folder)
        stored = stored_verdicts(folder)
        paths, inputs = inputs_of(folder, before, field_map(fields or []), tasks)
        asked = Asked(model, base_url, api_key_env, price, max_usd, ask_all, repeat)
        found = judged(paths, inputs, asked, out, as_json)
        facts, lines = report_of(found, paths, inputs, out, labels)
        facts["stored"] = compared = _compared(found, stored)
    if as_json:
        say_json(facts)
        return
    say("\n".join(lines))
    say("\nagainst the stored verdicts, which count as the labels here; only what the judge was asked about")
    say("\n".join(label_lines(compared)))


def _compared(found: "Analysis", stored: dict[tuple[str, str], bool]) -> dict[str, Any]:
    """Compare what the judge was asked about; a detector's verdict that stands in both would agree with itself."""
    from arise.analyze.labels import agreement
    from arise.report.analysis.facts import agreement_of

    asked = {(attempt.source, name) for attempt in found.attempts for name in attempt.asked}
    shared = {key: present for key, present in stored.items() if key in asked}
    return {name: agreement_of(row) for name, row in agreement(found.attempts, shared).items()}
