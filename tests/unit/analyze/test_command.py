"""`arise analyze` as a user types it: screen, reports, pool, skills, comparison, judge."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from arise.cli.app import app
from arise.llm.first_call.first_call import FIRST_CALL
from arise.llm.judge.canaries import known_answer
from arise.run.lifecycle_file import starting_pool
from arise.testing import Ask, FakeLLM, Say, always, honest, in_thread
from arise.types import Verdict
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


def judge(finding: Any) -> Any:
    """A judge that answers control questions right and every other one by `finding(ask, entry)`."""

    def answer(ask: Ask) -> Say:
        if FIRST_CALL in ask.data:
            return Say("ok", prompt_tokens=20, completion_tokens=1)
        turns = len(ask.data["sample_result"]["llm_interaction_trajectory"])
        lines = []
        for entry in ask.data["behaviours"]:
            known = known_answer(entry["rule"], turns)
            line = {"behaviour_id": entry["behaviour_id"], "applicable": True, "turn": None, "quote": None}
            line |= {"verdict": known.value} if known else finding(ask, entry)
            if known is Verdict.FAIL:
                line |= {"turn": 1, "quote": "x"}
            lines.append(json.dumps(line))
        return Say("\n".join(lines), prompt_tokens=2000, completion_tokens=100)

    return answer


def judged(tmp_path: Path, script: Any, *words: object) -> tuple[dict[str, Any], FakeLLM]:
    with in_thread(FakeLLM(script)) as fake:
        done = run(tmp_path / "runs.jsonl", "--judge", "m", "--base-url", fake.base_url, "--json", *words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout[done.stdout.index("{") :]), fake


def failing(tmp_path: Path, count: int) -> None:
    dump_lines(tmp_path / "runs.jsonl", [chat(f"t{n}", 0.0, reads_back=False) for n in range(count)])


def test_twenty_invented_quotes_are_dropped(tmp_path: Path) -> None:
    failing(tmp_path, 20)
    invented = {"verdict": "fail", "turn": 3, "quote": "rm -rf / --no-preserve-root"}
    facts, _ = judged(tmp_path, judge(lambda _ask, _entry: invented), "--max-usd", 0)
    found = facts["coverage"]["judge"]
    assert (found["dropped_quotes"], found["confirmed"]) == (20, 0)
    assert facts["gaps"] == []


def test_a_confirmed_finding_keeps_the_judges_quote(tmp_path: Path) -> None:
    failing(tmp_path, 4)
    real = {"verdict": "fail", "turn": 3, "quote": "sort in.csv"}
    facts, fake = judged(tmp_path, judge(lambda _ask, _entry: real), "--max-usd", 0, "--repeat", 2)
    assert facts["coverage"]["judge"]["confirmed"] == 4
    assert {quote["quote"] for quote in facts["gaps"][0]["quotes"]} == {"sort in.csv"}
    assert facts["coverage"]["judge"]["agreement"] == "4 of 4 repeated verdicts agree (100.0 %)"
    assert "verifier_success" not in fake.asks[-1].user


def test_a_refuted_finding_is_no_finding(tmp_path: Path) -> None:
    failing(tmp_path, 4)
    facts, _ = judged(tmp_path, judge(lambda _ask, _entry: {"verdict": "pass"}), "--max-usd", 0)
    assert (facts["coverage"]["judge"]["refuted"], facts["gaps"]) == (4, [])


def test_a_judge_that_obeys_the_trace_is_found_out(tmp_path: Path) -> None:
    failing(tmp_path, 3)

    def obedient(ask: Ask) -> Say:
        if FIRST_CALL in ask.data:
            return Say("ok")
        rows = [
            {"behaviour_id": e["behaviour_id"], "applicable": True, "verdict": "pass"} for e in ask.data["behaviours"]
        ]
        return Say("\n".join(map(json.dumps, rows)))

    facts, _ = judged(tmp_path, obedient, "--max-usd", 0)
    assert facts["coverage"]["judge"]["unjudged"] == {"control question answered wrongly": 3}


def test_the_cap_is_never_passed_and_the_rest_is_unjudged(tmp_path: Path) -> None:
    failing(tmp_path, 40)
    real = {"verdict": "fail", "turn": 3, "quote": "sort in.csv"}
    facts, fake = judged(tmp_path, judge(lambda _ask, _entry: real), "--max-usd", 0.5, "--price", "10,30")
    found = facts["coverage"]["judge"]
    assert 0 < found["usd"] <= 0.5
    assert found["judged"] + sum(found["unjudged"].values()) == 40
    assert found["unjudged"]["budget reached"] > 0
    assert len([ask for ask in fake.asks if FIRST_CALL not in ask.data]) == found["asked"]


def test_replies_are_kept_and_a_second_run_asks_nothing(tmp_path: Path) -> None:
    failing(tmp_path, 5)
    real = {"verdict": "fail", "turn": 3, "quote": "sort in.csv"}
    words = ("--max-usd", 0, "--out", tmp_path / "out")
    first, asked = judged(tmp_path, judge(lambda _ask, _entry: real), *words)
    with in_thread(FakeLLM(judge(lambda _ask, _entry: {"verdict": "pass"}))) as fake:
        done = run(tmp_path / "runs.jsonl", "--judge", "m", "--base-url", fake.base_url, "--json", *words)
    again = json.loads(done.stdout[done.stdout.index("{") :])
    assert len([ask for ask in asked.asks if FIRST_CALL not in ask.data]) == 5
    assert len([ask for ask in fake.asks if FIRST_CALL not in ask.data]) == 0
    assert again["gaps"] == first["gaps"]


def test_no_key_reaches_the_judge(tmp_path: Path) -> None:
    key = "sk-proj-" + "c" * 40
    row = chat("t", 0.0, reads_back=False)
    row["messages"][2]["content"] = f"export TOKEN={key}"
    dump_lines(tmp_path / "runs.jsonl", [row])
    _, fake = judged(tmp_path, judge(lambda _ask, _entry: {"verdict": "pass"}), "--max-usd", 0)
    assert len(fake.asks) > 1
    assert all(key not in json.dumps(ask.body) for ask in fake.asks)


def test_rejudge_compares_with_the_stored_verdicts_and_keeps_them(tmp_path: Path) -> None:
    failing(tmp_path, 6)
    out = tmp_path / "analysis"
    assert run(tmp_path / "runs.jsonl", "--out", out).exit_code == 0
    before = (out / "attempts.jsonl").read_bytes()
    real = {"verdict": "fail", "turn": 3, "quote": "sort in.csv"}
    (tmp_path / "labels.csv").write_text("source,behaviour,present\nruns.jsonl:1,P02,1\nruns.jsonl:2,P02,0\n")
    words = ("--model", "m", "--max-usd", "0", "--labels", str(tmp_path / "labels.csv"))
    with in_thread(FakeLLM(judge(lambda _ask, _entry: real))) as fake:
        done = CliRunner().invoke(app, ["judge", "rejudge", str(out), "--base-url", fake.base_url, *words, "--json"])
        shown = CliRunner().invoke(app, ["judge", "rejudge", str(out), "--base-url", fake.base_url, *words])
    facts = json.loads(done.stdout[done.stdout.index("{") :])
    assert facts["stored"]["P02"]["both"] == 6
    assert set(facts["stored"]) == {"P02", "all"}
    assert (facts["labels"]["P02"]["precision"], facts["labels"]["P02"]["recall"]) == (0.5, 1.0)
    assert "against the stored verdicts" in shown.output
    assert (out / "attempts.jsonl").read_bytes() == before


def test_a_mapped_folder_is_checked_and_judged_again_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for number in range(12):
        row = chat(f"t{number // 3}", None, reads_back=number % 3 == 0)
        rows.append({"log": row["messages"], "grade": float(number % 3 == 0), "name": row["task_id"]})
    dump_lines(tmp_path / "work" / "runs" / "mine.jsonl", rows)
    monkeypatch.chdir(tmp_path / "work")
    assert run("runs", "--map", "messages=log,outcome=grade,task=name", "--out", "out").exit_code == 0
    monkeypatch.chdir(tmp_path)
    real = {"verdict": "fail", "turn": 3, "quote": "sort in.csv"}
    with in_thread(FakeLLM(judge(lambda _ask, _entry: real))) as fake:
        words = ["work/out", "--base-url", fake.base_url, "--model", "m", "--json"]
        again = CliRunner().invoke(app, ["judge", "rejudge", *words, "--max-usd", "0"])
    with in_thread(FakeLLM(honest(lambda _rule, _ask: Verdict.PASS))) as fake:
        words = ["work/out", "--base-url", fake.base_url, "--model", "m", "--json"]
        checked = CliRunner().invoke(app, ["judge", "check", *words])
    assert again.exit_code == 0, again.output
    facts = json.loads(again.stdout[again.stdout.index("{") :])
    assert facts["pass_rate"]["total"] == 12
    assert facts["stored"]["P02"]["both"] == 8
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["cases"] == 12


def test_unjudged_is_not_clean(tmp_path: Path) -> None:
    """A judge without a usable reply neither clears an attempt nor disagrees with the stored verdict."""
    failing(tmp_path, 6)
    out = tmp_path / "analysis"
    assert run(tmp_path / "runs.jsonl", "--out", out).exit_code == 0
    words = ["judge", "rejudge", str(out), "--model", "m", "--max-usd", "0"]
    with in_thread(FakeLLM(always("I cannot judge this."))) as fake:
        done = CliRunner().invoke(app, [*words, "--base-url", fake.base_url, "--json"])
        shown = CliRunner().invoke(app, [*words, "--base-url", fake.base_url])
    assert "P02" not in json.loads(done.stdout[done.stdout.index("{") :])["stored"]
    assert "not known to be clean" in shown.output


def test_rejudge_refuses_a_folder_that_is_no_analysis(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["judge", "rejudge", str(tmp_path), "--max-usd", "0"])
    assert done.exit_code != 0
    assert "make it again: arise analyze PATH --out FOLDER" in done.output
