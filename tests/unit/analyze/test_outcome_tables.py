"""Verdicts from a table of the user: `arise analyze --outcomes`."""

import json
from pathlib import Path

from typer.testing import CliRunner

from arise.analyze.found import Options, Triage
from arise.analyze.scan import Scan
from arise.cli.app import app
from tests.trajectory_files import dump, dump_lines
from tests.unit.analyze.test_cold_trials import chat


def test_outcomes_from_a_table_beside_the_trajectories(tmp_path: Path) -> None:
    """Sessions of Claude Code have no outcome; an evaluation keeps its verdicts in a file of its own, per folder."""
    for folder, right in (("first", True), ("second", False)):
        for number in range(3):
            say = {"type": "assistant", "sessionId": "s", "message": {"id": "m", "content": f"Done {folder} {number}."}}
            ask = {"type": "user", "sessionId": "s", "message": {"content": f"Do {number}."}}
            dump_lines(tmp_path / folder / f"task_{number}.jsonl", [ask, say])
        dump(tmp_path / folder / "eval.json", [{"task_id": str(n), "match": right} for n in range(3)])
    command = ["analyze", str(tmp_path), "--map", "outcome=match"]
    without = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert without["pass_rate"]["total"] == 0
    found = json.loads(CliRunner().invoke(app, [*command, "--outcomes", "eval.json", "--json"]).stdout)
    assert (found["pass_rate"]["count"], found["pass_rate"]["total"]) == (3, 6)
    assert (
        "6 of them from the 6 rows of eval.json"
        in CliRunner().invoke(app, [*command, "--outcomes", "eval.json"]).output
    )
    table = tmp_path / "table.csv"
    table.write_text("source,match\nfirst/task_0.jsonl,fail\nsecond/task_2.jsonl,pass\nsecond/none.jsonl,pass\n")
    rows = json.loads(CliRunner().invoke(app, [*command, "--outcomes", str(table), "--json"]).stdout)
    assert (rows["pass_rate"]["count"], rows["pass_rate"]["total"]) == (1, 2)
    assert (rows["coverage"]["outcome_rows"], rows["coverage"]["outcome_rows_used"]) == (3, 2)


def test_rows_that_disagree_about_an_attempt_are_no_verdict(tmp_path: Path) -> None:
    dump_lines(tmp_path / "a.jsonl", [{"task_id": "t", "messages": chat("Do it.", "Done.")}])
    dump(tmp_path / "outcomes.json", [{"task": "t", "success": True}, {"task": "t", "success": False}])
    (found,) = Scan([tmp_path / "a.jsonl"], Options(outcomes="outcomes.json"))
    assert (found.outcome.triage, found.outcome.reason) == (Triage.MISSING, "2 rows of outcomes.json disagree")


def test_a_table_that_cannot_be_read_is_refused_with_its_name(tmp_path: Path) -> None:
    dump_lines(tmp_path / "a.jsonl", [{"task_id": "t", "messages": chat("Do it.", "Done.")}])
    (tmp_path / "bad.json").write_text("{")
    done = CliRunner().invoke(app, ["analyze", str(tmp_path / "a.jsonl"), "--outcomes", str(tmp_path / "bad.json")])
    assert done.exit_code == 2
    assert "bad.json" in done.output
    lost = CliRunner().invoke(app, ["analyze", str(tmp_path / "a.jsonl"), "--outcomes", "nowhere.json"])
    assert "nowhere.json has no row with a task and an outcome" in lost.output
