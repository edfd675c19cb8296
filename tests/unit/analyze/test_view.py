"""The folder of an analysis in `arise view` and `arise judge check`."""

import json
from pathlib import Path

from typer.testing import CliRunner

from arise.cli.app import app
from arise.testing import FakeLLM, honest, in_thread
from arise.types import Verdict
from tests.trajectory_files import contrast


def analysis(tmp_path: Path) -> Path:
    contrast(tmp_path / "runs.jsonl")
    done = CliRunner().invoke(app, ["analyze", str(tmp_path / "runs.jsonl"), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    return tmp_path / "out"


def test_view_exports_the_page_and_refuses_another_version(tmp_path: Path) -> None:
    out = analysis(tmp_path)
    done = CliRunner().invoke(app, ["view", str(out), "--export", str(tmp_path / "one.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "one.html").read_bytes() == (out / "report.html").read_bytes()
    facts = json.loads((out / "analysis.json").read_text()) | {"version": 99}
    (out / "analysis.json").write_text(json.dumps(facts))
    wrong = CliRunner().invoke(app, ["view", str(out), "--export", str(tmp_path / "two.html")])
    assert wrong.exit_code == 2
    assert "version 99" in wrong.output


def test_a_judge_is_checked_on_the_attempts_of_an_analysis(tmp_path: Path) -> None:
    out = analysis(tmp_path)
    with in_thread(FakeLLM(honest(lambda _rule, _ask: Verdict.PASS))) as fake:
        done = CliRunner().invoke(
            app, ["judge", "check", str(out), "--model", "m", "--base-url", fake.base_url, "--limit", "4", "--json"]
        )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["cases"] == 4
