"""`arise analyze` as a user types it: screen, reports, pool, skills, comparison, judge."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from arise.cli.app import app
from arise.run.lifecycle_file import starting_pool
from tests.trajectory_files import POINTER, chat, contrast, dump_lines, trial


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["analyze", *map(str, words)])


def test_the_first_screen_starts_with_the_denominator(tmp_path: Path) -> None:
    contrast(tmp_path / "runs.jsonl")
    (tmp_path / "lost.json").write_text(POINTER)
    done = run(tmp_path)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "coverage   found 51 · parsed 50 · outcome known 50 · judged 50 by offline detectors · skipped 1"
    assert "pass rate  50.0 % (36.6 to 63.4) of 50 valid verdicts; on file 50.0 %" in done.output
    assert "Gaps: associated with failure" in done.output
    assert "No look at the result after it was written" in done.output
    assert "within tasks, q " in done.output
    assert '"sort in.csv > out.csv"' in done.output


def test_rewards_that_are_no_verdicts_change_the_pass_rate(tmp_path: Path) -> None:
    for number in range(4):
        trial(tmp_path / f"a__{number}", reward=float(number == 0))
    for number in range(2):
        trial(tmp_path / f"b__{number}", stdout="curl: (6) Could not resolve host: x\n")
    found = json.loads(run(tmp_path, "--json").output)
    assert found["pass_rate"]["total"] == 4
    assert found["raw_pass_rate"]["total"] == 6
    assert found["coverage"]["triage"]["verifier never ran"] == 2


def test_reports_are_the_same_bytes_again(tmp_path: Path) -> None:
    contrast(tmp_path / "in" / "runs.jsonl")
    for name in ("one", "two"):
        assert run(tmp_path / "in", "--out", tmp_path / name).exit_code == 0
    first, second = (sorted(file for file in (tmp_path / name).rglob("*") if file.is_file()) for name in ("one", "two"))
    assert [file.relative_to(tmp_path / "one") for file in first] == [
        file.relative_to(tmp_path / "two") for file in second
    ]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    assert {file.name for file in first} == {
        "analysis.json",
        "attempts.jsonl",
        "pool.json",
        "report.html",
        "report.md",
        "SKILL.md",
    }


def test_reports_below_what_is_analysed_are_no_input(tmp_path: Path) -> None:
    contrast(tmp_path / "runs.jsonl")
    first, second = (run(tmp_path, "--out", tmp_path / "analysis", "--json").output for _ in range(2))
    assert first == second


def test_pool_and_skills_can_be_used(tmp_path: Path) -> None:
    from skills_ref import validate

    contrast(tmp_path / "runs.jsonl")
    run(tmp_path, "--out", tmp_path / "out")
    pool = starting_pool(tmp_path / "out" / "pool.json")
    assert "reads back" in pool.rubrics[0].criteria_text
    (skill,) = (tmp_path / "out" / "skills").glob("*/SKILL.md")
    assert validate(skill.parent) == []
    assert "missed-in-failures: 24 of 25" in skill.read_text()


def test_every_quote_of_the_page_is_marked_in_its_turn_and_nothing_is_fetched(tmp_path: Path) -> None:
    rows = [chat(f"t{n}", float(n % 2), reads_back=bool(n % 2)) for n in range(8)]
    rows[0]["messages"][0]["content"] += "<script>alert(1)</script>"
    dump_lines(tmp_path / "runs.jsonl", rows)
    run(tmp_path, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    quotes = [q for gap in json.loads((tmp_path / "out" / "analysis.json").read_text())["gaps"] for q in gap["quotes"]]
    assert quotes
    assert page.count("<mark>") >= len(quotes)
    assert "<script" not in page
    assert not re.search(r"(src|href)=[\"']?https?:", page)


def test_no_key_reaches_a_file(tmp_path: Path) -> None:
    key = "ghp_" + "b" * 36
    rows = [chat(f"t{n}", 0.0, reads_back=False) for n in range(4)]
    for row in rows:
        row["messages"][0]["content"] += f" Use {key}."
        row["messages"][-3]["tool_calls"][0]["function"]["arguments"] = json.dumps(
            {"command": f"K={key} sort in.csv > out.csv"}
        )
    dump_lines(tmp_path / "runs.jsonl", rows)
    done = run(tmp_path, "--out", tmp_path / "out")
    assert key not in done.output
    assert all(key not in file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file())


def test_against_is_for_pipelines(tmp_path: Path) -> None:
    good = dump_lines(tmp_path / "good.jsonl", [chat(f"t{n}", 1.0, reads_back=True) for n in range(10)])
    bad = dump_lines(tmp_path / "bad.jsonl", [chat(f"t{n}", 0.0, reads_back=False) for n in range(10)])
    few = dump_lines(tmp_path / "few.jsonl", [chat("t1", 1.0, reads_back=True)])
    assert run(good, "--against", bad).exit_code == 0
    assert run(bad, "--against", good).exit_code == 1
    assert run(few, "--against", good).exit_code == 2
    found = json.loads(run(bad, "--against", good, "--json").output)
    assert (found["finding"], found["passes"]["p"]) == ("worse", pytest.approx(2 / 2**10, rel=1e-5))
    assert found["behaviours"][0]["id"] == "P02"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere does not exist"),
        ([".", "--map", "verdict=x"], "expected FIELD=NAME"),
        ([".", "--tasks", "empty"], "holds no instruction.md"),
        ([".", "--judge", "m"], "--judge needs --max-usd"),
    ],
)
def test_bad_options_are_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = run(*words)
    assert done.exit_code == 2 or "tasks" in said or done.exit_code == 3
    assert said in done.output


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.exit_code == 2
    assert "--map messages=FIELD" in done.output
