"""Faults that unprepared public folders showed, each in a file of the same shape."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arise.analyze.behaviours import Sighting
from arise.analyze.conversation import Conversation
from arise.analyze.found import MISSING, Found, Triage
from arise.analyze.gaps import find_gaps
from arise.analyze.quotes import quote_from
from arise.analyze.scan import Scan
from arise.cli.app import app
from arise.compose.analyze import behaviours, detect
from arise.types import Observation, Turn
from tests.trajectory_files import dump, dump_lines

BROKEN = "The function in this repository is broken: it raises an error. Fix it."


def read(path: Path) -> list[Found]:
    return list(Scan([path]))


def chat(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(texts)]


def shell(*steps: tuple[str, str]) -> Found:
    """Return an attempt of shell commands with their outputs."""
    into = Conversation()
    into.add_user(BROKEN)
    for command, output in steps:
        into.add_agent("")
        into.add_call("bash", {"command": command})
        into.add_result(output)
    into.add_agent("")
    into.add_call("submit", {})
    return Found(into.trajectory("a", "t"), into.task("t", {}), MISSING, "a", "test")


def seen(found: Found) -> dict[str, Sighting]:
    return {sighting.behaviour: sighting for sighting in detect(found)}


def swe_agent(path: Path, *steps: tuple[str, str, str]) -> Found:
    """Write a trajectory of SWE-agent from action, observation and open file; return it as read."""
    rows = [
        {"action": action, "observation": output, "response": "", "state": json.dumps({"open_file": file})}
        for action, output, file in steps
    ]
    history = [{"role": "user", "content": BROKEN}]
    dump(path / "a__b-1.traj", {"trajectory": rows, "history": history, "info": {"exit_status": "submitted"}})
    (found,) = read(path)
    return found


def test_rollouts_of_the_responses_api(tmp_path: Path) -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look first"}]},
        {"type": "function_call", "name": "get_weather", "arguments": '{"city": "Paris"}', "call_id": "c1"},
        {"type": "function_call", "name": "get_time", "arguments": "{}", "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c2", "output": "noon"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
    ]
    asked = {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "Weather?"}]}
    row = {"responses_create_params": asked, "response": {"model": "m", "output": output}, "reward": 1.0}
    nested = row | {"response": {"model": "m", "output": [output[-1:]]}, "reward": 0.5}
    dump_lines(tmp_path / "rollouts.jsonl", [row, nested])
    first, second = read(tmp_path)
    turn, last = first.trajectory.turns
    assert (turn.reasoning, [call.name for call in turn.calls]) == ("look first", ["get_weather", "get_time"])
    assert {result.call_id: result.text for result in turn.observations} == {"c1": "rain", "c2": "noon"}
    assert (last.text, first.model, first.outcome.passed) == ("It rains.", "m", True)
    assert (second.outcome.passed, second.trajectory.turns[0].text) == (False, "It rains.")
    assert first.task.id == second.task.id  # no id on file: the same instruction is the same task


def test_rows_inside_a_document_share_what_it_says_once(tmp_path: Path) -> None:
    rows = [
        {"task_id": f"L{n}", "success": n == 1, "conversation_log": {"messages": chat("Do it.", f"Done {n}.")}}
        for n in (1, 2)
    ]
    dump(tmp_path / "L1.json", {"metadata": {"model": "m"}, "statistics": [{"calls": 3}], "results": rows})
    assert [(f.task.id, f.model, f.outcome.passed) for f in read(tmp_path)] == [("L1", "m", True), ("L2", "m", False)]


@pytest.mark.parametrize(
    ("more", "triage", "passed"),
    [
        ({"reward": 0.0, "info": {"error": "litellm.RateLimitError: 429", "traceback": "..."}}, "infrastructure", None),
        ({"reward": 0.0, "info": {"error": "KeyError: 'city'", "traceback": "..."}}, "valid", False),
        ({"reward": 1.0, "info": {"error": "connection reset"}}, "valid", True),
        ({"correct": False, "infra_fail": True, "infra_reason": "no connection"}, "infrastructure", None),
        ({"reward": 0.0, "verifier_error": "no container"}, "verifier never ran", None),
        ({"score": {"outcome": "correct", "correctness": True}}, "valid", True),
        ({"other_data": {"correct": False}}, "valid", False),
    ],
)
def test_outcomes_next_to_an_error_or_inside_an_object(tmp_path: Path, more: Any, triage: str, passed: Any) -> None:
    dump_lines(tmp_path / "a.jsonl", [{"task_id": "t", "messages": chat("Do it.", "Done.")} | more])
    (found,) = read(tmp_path)
    assert (found.outcome.triage, found.outcome.passed) == (Triage(triage), passed)


def test_an_error_before_the_first_message_is_infrastructure_and_stays_on_file(tmp_path: Path) -> None:
    rows = [{"task_id": "1", "reward": 0.0, "traj": [], "info": {"error": "litellm.APIConnectionError"}}]
    rows += [{"task_id": "2", "reward": 1.0, "traj": chat("Do it.", "Done."), "info": {}}]
    dump(tmp_path / "results.json", rows)
    done = CliRunner().invoke(app, ["analyze", str(tmp_path / "results.json")])
    assert "found 2 · parsed 2 · outcome known 1" in done.output
    assert "of 1 valid verdicts; on file 50.0 %" in done.output


def test_rewards_between_0_and_1_are_mentioned(tmp_path: Path) -> None:
    rows = [{"task_id": str(n), "reward": n / 2, "messages": chat("Do it.", f"Done {n}.")} for n in range(3)]
    dump_lines(tmp_path / "a.jsonl", rows)
    done = CliRunner().invoke(app, ["analyze", str(tmp_path / "a.jsonl")])
    assert "1 rewards between 0 and 1 count as failed" in done.output


def test_a_patient_is_not_an_agent(tmp_path: Path) -> None:
    spoken = [{"role": "doctor", "text": "What hurts?"}, {"role": "patient", "text": "My knee. Is it bad?"}]
    dump_lines(tmp_path / "a.jsonl", [{"scenario_id": "s", "dialogue": spoken, "success": False}])
    (found,) = read(tmp_path)
    assert (found.task.id, len(found.trajectory.turns)) == ("s", 1)
    assert found.task.instruction == "My knee. Is it bad?"


def test_equal_words_of_two_models_are_two_attempts(tmp_path: Path) -> None:
    for model in ("a", "b"):
        dump_lines(tmp_path / f"{model}.jsonl", [{"task_id": "t", "model": model, "messages": chat("Hi.", "No.")}])
    assert len(read(tmp_path)) == 2


def mini(path: Path, run: str, name: str) -> None:
    dump(
        path / run / name / f"{name}.traj.json", {"info": {"submission": "x" * 70_000}, "messages": chat("Fix.", "Ok")}
    )


def test_reports_in_an_evaluation_folder(tmp_path: Path) -> None:
    mini(tmp_path, "runs", "a__b-1")
    dump(tmp_path / "runs/eval_results/model/a__b-1/report.json", {"a__b-1": {"resolved": True}})
    (found,) = read(tmp_path / "runs")
    assert (found.form, found.outcome.passed) == ("mini-swe-agent", True)


def test_reports_of_several_runs_belong_to_the_run_of_the_same_name(tmp_path: Path) -> None:
    for run, resolved in (("one", True), ("two", False)):
        mini(tmp_path, run, "a__b-1")
        dump(tmp_path / f"logs/run_evaluation/{run}/m/a__b-1/report.json", {"a__b-1": {"resolved": resolved}})
    mini(tmp_path, "three", "a__b-1")
    assert {f.source.split("/")[0]: f.outcome.passed for f in read(tmp_path)} == {
        "one": True, "two": False, "three": None
    }  # fmt: skip


def test_a_script_that_reproduces_the_failure_is_no_edit() -> None:
    found = shell(
        ("cat > replicate_issue.py <<'EOF'\nf()\nEOF", ""),
        ("python replicate_issue.py", "Traceback (most recent call last):\nValueError"),
        ("sed -i 's/a/b/' src/core.py", ""),
        ("python replicate_issue.py", "ok"),
    )
    assert not seen(found)["P09"].present
    hasty = seen(shell(("sed -i 's/a/b/' src/core.py", ""), ("python run.py", "ok")))["P09"]
    assert hasty.present
    assert "edited src/core.py before anything" in hasty.detail


def test_no_attempt_without_a_change_is_called_an_edit() -> None:
    idle = seen(shell(("cat > reproduce.py <<'EOF'\nf()\nEOF", ""), ("python reproduce.py", "ValueError: x")))
    assert idle["H15"].present
    assert "P12" not in idle
    assert not seen(shell(("sed -i 's/a/b/' src/core.py", "")))["H15"].present
    script = "cat > fix.py <<'EOF'\nopen('src/core.py', 'w').write('x')\nEOF"
    assert not seen(shell((script, ""), ("python fix.py", "")))["H15"].present


def test_a_look_that_may_find_nothing_hides_no_failure() -> None:
    failing = ("python run.py", "Traceback (most recent call last):\nValueError: x")
    assert not seen(shell(failing, ("cd src && grep -rn foo . | head || true", "")))["P10"].present
    assert seen(shell(failing, ("python run.py || true", "")))["P10"].present


def test_files_named_in_a_text_that_was_read_are_not_written() -> None:
    found = shell(("nl -ba src/core.py | sed -n '1,9p'", "     4\t# generated: _lextab.py"), ("python run.py", "ok"))
    assert "H06" not in seen(found)
    assert seen(found)["H15"].present


def test_an_editor_that_shows_the_file_has_changed_it(tmp_path: Path) -> None:
    shown = "[File: /repo/src/core.py (3 lines total)]\n1:def f():\n2:    return\n3: Error = ValueError"
    found = swe_agent(
        tmp_path,
        ("open src/core.py", "1:def f():\n2:    pass", "n/a"),
        ("edit 2:2\n    return\nend_of_edit", shown, "/repo/src/core.py"),
        ("submit", "diff", "/repo/src/core.py"),
    )
    assert not seen(found)["H15"].present
    assert quote_from(found.trajectory.turns[1], "turn 2 changed src/core.py") == "edit 2:2"


def test_a_refused_edit_and_an_edit_of_no_file_change_nothing(tmp_path: Path) -> None:
    found = swe_agent(
        tmp_path,
        ("edit 1:1\nx\nend_of_edit", "No file open.", "n/a"),
        ("edit 2:2\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).", "/repo/src/core.py"),
        ("submit", "", "/repo/src/core.py"),
    )
    findings = seen(found)
    assert found.trajectory.turns[1].observations[0].error
    assert not any("wrote ," in sighting.detail for sighting in findings.values())


def test_an_offer_to_transfer_is_not_giving_up(tmp_path: Path) -> None:
    offers = ("If you like, I can transfer you to a human agent.", "I will transfer you to a human agent.")
    rows = [{"task_id": str(n), "messages": chat("Help me.", text)} for n, text in enumerate(offers)]
    dump_lines(tmp_path / "a.jsonl", rows)
    assert [seen(found)["H11"].present for found in read(tmp_path)] == [False, True]


def test_long_attempts_alone_make_no_gap(tmp_path: Path) -> None:
    """Long attempts fail and show everything, short ones pass: within one length nothing differs."""
    rows = []
    for number in range(90):
        long = number % 2 == 0
        says = "Let us assume that it works." if long == (number % 10 < 8) else "It works."
        messages = chat("Do it.", says, *(("Go on.", "Yes.") * (20 if long else 2)))
        rows.append({"task_id": f"t{number}", "messages": messages, "success": (number % 10 < 2) == long})
    dump_lines(tmp_path / "a.jsonl", rows)
    done = CliRunner().invoke(app, ["analyze", str(tmp_path / "a.jsonl")])
    assert "Gaps: associated with failure" not in done.output
    assert find_gaps((), behaviours()) == []


def test_a_quote_holds_the_word_itself_and_no_longer_one() -> None:
    line = "[!] the attack is only for partial keys"
    turn = Turn("", (), (Observation(f"Performing partial_d attack\n{line}"),))
    assert quote_from(turn, "turn 1 answered 'partial' and the agent went on") == line


def test_equal_simulations_of_two_runs_are_two_attempts(tmp_path: Path) -> None:
    """A short conversation may go the same way twice; a copy has the same id."""
    info = {"num_trials": 1, "user_info": {}, "agent_info": {"llm": "m"}}
    for name, number in (("base", "s1"), ("retry", "s2"), ("copy", "s1")):
        row = {"id": number, "task_id": "5", "trial": 0, "reward_info": {"reward": 1.0}, "messages": chat("Hi.", "No.")}
        dump(tmp_path / f"{name}.json", {"info": info, "tasks": [], "simulations": [row]})
    scan = Scan([tmp_path])
    assert (len(list(scan)), scan.coverage.duplicates) == (2, 1)


def test_a_recording_of_the_terminal_shows_what_the_agent_typed(tmp_path: Path) -> None:
    """Later jobs of terminal-bench keep an asciicast; an agent that failed before it typed anything has no verdict."""
    shown = {"typed": "root@c:/app# ls\r\nin.csv\r\nroot@c:/app# cat in.csv\r\n1\r\n", "idle": "root@c:/app# clear\r\n"}
    for name, mode in (("typed", "unknown_agent_error"), ("idle", "unknown_agent_error"), ("idle", "unset")):
        folder = tmp_path / "job" / f"{name}-{mode}" / "trial"
        dump(
            folder / "results.json", {"task_id": name, "is_resolved": False, "failure_mode": mode, "instruction": "Do."}
        )
        (folder / "sessions").mkdir()
        rows = [json.dumps({"version": 2}), *(json.dumps([0.1, "o", part]) for part in shown[name].splitlines(True))]
        (folder / "sessions" / "agent.cast").write_text("\n".join(rows) + "\n")
    found = {f.source.partition("/trial")[0][4:]: f for f in Scan([tmp_path])}
    assert {name: (f.outcome.triage, f.outcome.passed) for name, f in found.items()} == {
        "typed-unknown_agent_error": (Triage.VALID, False),
        "idle-unknown_agent_error": (Triage.INFRASTRUCTURE, None),
        "idle-unset": (Triage.VALID, False),
    }
    typed = found["typed-unknown_agent_error"].trajectory.turns
    assert [turn.calls[0].arguments["command"] for turn in typed] == ["ls", "cat in.csv"]
