"""The same quantity of one run is written the same on screen, page, list, report and export."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

from fastapi.testclient import TestClient
from rich.console import Console
from typer.testing import CliRunner

from arise.cli.app import app
from arise.config import Config
from arise.observe.judge_monitor import JudgeMonitor
from arise.observe.live import LiveDisplay
from arise.observe.summary import story_lines
from arise.report.comparison.measures import measure
from arise.report.comparison.tables import table_final, table_seeds
from arise.report.exports import export
from arise.run.facts.story import run_facts
from arise.run.reader import RunReader
from arise.text import numbers
from tests.dashboard.test_pages import text_of
from tests.unit.observe.test_live import METRICS, record


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.output


def test_the_held_out_rate(run: Path, client: TestClient, tmp_path: Path) -> None:
    export(run, "jsonl", tmp_path)
    attempts = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    won, tried = (
        sum(row["success"] for row in attempts if row["label"] == "after"),
        sum(row["label"] == "after" for row in attempts),
    )
    rate = numbers.counted_rate(won, tried).partition(" (")[0]
    with RunReader.open(run) as reader:
        screen = "\n".join(story_lines(run_facts(reader)))
    for text in (
        screen,
        text_of(client.get(f"/runs/{run.name}").text),
        text_of(client.get(f"/runs/{run.name}/evaluation").text),
        said("runs", str(run.parent)),
    ):
        assert rate in text
    measured = {"arise": [measure(run, "arise")]}
    for table in (table_final(measured), table_seeds(measured)):
        assert rate.removesuffix(" %") in " ".join(table.rows[0])


def test_the_change_and_its_interval(run: Path, client: TestClient) -> None:
    with RunReader.open(run) as reader:
        change = run_facts(reader).held_out.change
    assert change
    screen = said("runs", str(run.parent)), text_of(client.get(f"/runs/{run.name}").text)
    assert all(change.from_to in text for text in screen)
    assert change.difference_text in screen[1]


def test_a_rubrics_rates(run: Path, client: TestClient) -> None:
    listed = json.loads(said("pool", "ls", str(run), "--all", "--json"))
    table = said("pool", "ls", str(run), "--all")
    for facts in listed:
        written = numbers.counted_rate(facts["unguided_passes"], facts["unguided_evaluations"])
        (line,) = [line for line in table.splitlines() if line.startswith(f"{facts['rubric']} ")]
        assert written in line
    lives = [json.loads(said("pool", "show", str(run), facts["rubric"], "--json")) for facts in listed[:5]]
    rubric, event = next((life["rubric"]["id"], e) for life in lives for e in life["events"] if e["evaluations"])
    written = numbers.percent(event["passes"] / event["evaluations"])
    counts = f"{event['passes']} of {event['evaluations']}"
    assert f"after {event['iteration']:>4}" in (text := said("pool", "show", str(run), rubric))
    assert f"{written} ({counts})" in text
    page = text_of(client.get(f"/runs/{run.name}/pool/{rubric}").text)
    assert f"after iteration {event['iteration']} : {counts} passed ({written})" in re.sub(r" ?: ", " : ", page)


def test_iterations_are_numbered_from_one_everywhere(run: Path, client: TestClient, tmp_path: Path) -> None:
    with RunReader.open(run) as reader:
        last, committed = reader.last_iteration(), reader.committed()
    assert last
    assert (last.k, last.number) == (committed - 1, committed)
    export(run, "jsonl", tmp_path)
    for name in ("iterations", "rollouts", "events", "groups"):
        records = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert {record["iteration"] - record["k"] for record in records} == {1}
    attempts = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    assert {(row["label"], row["iteration"]) for row in attempts} >= {("before", 0), ("after", committed)}
    assert f"iteration {committed}" in text_of(client.get(f"/runs/{run.name}/sampler").text)


def test_the_live_screen_names_the_same_weakest_behaviours(run: Path) -> None:
    out = io.StringIO()
    with RunReader.open(run) as reader:
        with LiveDisplay(Console(file=out, force_terminal=True, width=200), Config(), Path("first")) as display:
            display.judge_monitor = JudgeMonitor(Config(), reader, 0)
            display.finished(replace(record(39), metrics=METRICS | {"verdicts": 4.0, "verdicts_absent": 0.0}))
        weakest = run_facts(reader).still_wrong[:3]
    assert len(weakest) == 3
    shown = out.getvalue()
    assert "still wrong" in shown
    for behaviour in weakest:
        assert f"{numbers.counted_rate(*behaviour.unguided)}  {behaviour.rubric.id} " in shown
