"""`arise analyze --judge`, `judge check` and `judge rejudge` with a scripted judge."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.llm.first_call.first_call import FIRST_CALL
from arise.llm.judge.canaries import known_answer
from arise.testing import Ask, FakeLLM, Say, always, honest, in_thread
from arise.types import Verdict
from tests.trajectory_files import chat, dump_lines
from tests.unit.analyze.test_command import run


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
