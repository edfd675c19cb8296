"""The other formats and their traps, each read through the scan that the command uses."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from arise.analyze.found import Found, Options, Triage
from arise.analyze.scan import Scan
from arise.types import StopReason
from tests.trajectory_files import dump, dump_lines, inspect_log, inspect_sample


def read(path: Path, **fields: str) -> list[Found]:
    return list(Scan([path], Options(fields)))


def one(path: Path, **fields: str) -> Found:
    (found,) = read(path, **fields)
    return found


@pytest.mark.parametrize(
    ("sample", "triage", "passed"),
    [
        (inspect_sample(1), Triage.VALID, True),
        (inspect_sample(1, "I"), Triage.VALID, False),
        (inspect_sample(1, 0.5), Triage.VALID, False),
        (inspect_sample(1, None), Triage.UNVERIFIED, None),
        (inspect_sample(1, "C", error={"message": "sandbox died"}), Triage.INFRASTRUCTURE, None),
        (inspect_sample(1, "I", limit={"type": "time", "limit": 60}), Triage.TIME_LIMIT, False),
        (inspect_sample(1, "I", limit={"type": "message", "limit": 6}), Triage.VALID, False),
        (inspect_sample(1, {"a": 1, "b": 0}), Triage.MISSING, None),
    ],
)
def test_inspect_samples(tmp_path: Path, sample: dict[str, Any], triage: Triage, passed: bool | None) -> None:
    found = one(inspect_log(tmp_path / "a.eval", [sample]))
    assert (found.outcome.triage, found.outcome.passed) == (triage, passed)
    assert (found.task.id, found.trajectory.system_prompt) == ("files/1", "the whole system prompt")
    assert found.trajectory.turns[0].observations[0].text == "in.csv"
    assert found.trajectory.turns[0].reasoning == "hm"


def test_an_interrupted_inspect_log_has_no_header(tmp_path: Path) -> None:
    found = one(inspect_log(tmp_path / "a.eval", [inspect_sample(1)], "_journal/start.json"))
    assert (found.model, found.group) == ("m", "files")


def test_inspect_json_and_the_scorer_that_the_map_names(tmp_path: Path) -> None:
    sample = inspect_sample(1, "I")
    sample["scores"]["strict"] = {"value": "C"}
    log = {"version": 2, "status": "success", "eval": {"task": "files", "model": "m"}, "samples": [sample]}
    dump(tmp_path / "a.json", log)
    assert one(tmp_path).outcome.passed is False
    assert one(tmp_path, outcome="strict").outcome.passed is True


def test_a_damaged_inspect_log_is_counted(tmp_path: Path) -> None:
    path = inspect_log(tmp_path / "a.eval", [inspect_sample(1)])
    path.write_bytes(path.read_bytes()[:200])
    scan = Scan([tmp_path])
    assert list(scan) == []
    assert scan.coverage.skipped == {"damaged Inspect log": 1}


MINI = [
    {"role": "system", "content": "You answer with one command."},
    {"role": "user", "content": "Fix it."},
    {"role": "assistant", "content": "Look.\n\n```bash\ncat a.py\n```"},
    {"role": "user", "content": "<returncode>1</returncode>\n<output>\nno such file\n</output>"},
    {"role": "assistant", "content": "Submit.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"},
    {"role": "exit", "content": "patch"},
]


def mini(path: Path, name: str, form: str = "mini-swe-agent-1", messages: Any = MINI) -> Path:
    info = {"exit_status": "Submitted", "submission": "", "config": {"model": {"model_name": "m"}}}
    return dump(path, {"trajectory_format": form, "instance_id": name, "messages": messages, "info": info})


def test_submitted_is_no_success(tmp_path: Path) -> None:
    mini(tmp_path / "a__b-1" / "a__b-1.traj.json", "a__b-1")
    found = one(tmp_path)
    assert found.outcome.triage is Triage.MISSING
    assert "Submitted" in found.outcome.reason
    assert [turn.calls[0].arguments["command"] for turn in found.trajectory.turns][0] == "cat a.py"
    assert found.trajectory.turns[0].observations[0].error
    assert found.group == "a__b"


@pytest.mark.parametrize(
    ("side", "value", "triage", "passed"),
    [
        ("a__b-1/report.json", {"a__b-1": {"resolved": True}}, Triage.VALID, True),
        ("logs/a__b-1/report.json", {"a__b-1": {"resolved": False}}, Triage.VALID, False),
        ("results.json", {"resolved": ["a__b-1"], "no_logs": []}, Triage.VALID, True),
        ("results.json", {"resolved": [], "no_logs": ["a__b-1"]}, Triage.UNVERIFIED, None),
        ("results/results.json", {"resolved": ["x"]}, Triage.VALID, False),
        ("run.json", {"resolved_ids": [], "unresolved_ids": ["a__b-1"]}, Triage.VALID, False),
        ("run.json", {"resolved_ids": ["x"], "error_ids": ["a__b-1"]}, Triage.UNVERIFIED, None),
        ("run.json", {"resolved_ids": ["x"], "unresolved_ids": ["y"]}, Triage.MISSING, None),
    ],
)
def test_outcomes_lie_in_side_files(tmp_path: Path, side: str, value: Any, triage: Triage, passed: Any) -> None:
    mini(tmp_path / "a__b-1" / "a__b-1.traj.json", "a__b-1")
    dump(tmp_path / side, value)
    found = [found for found in read(tmp_path) if found.form == "mini-swe-agent"]
    assert [(f.outcome.triage, f.outcome.passed) for f in found] == [(triage, passed)]


def test_the_later_mini_format_notes_its_actions(tmp_path: Path) -> None:
    messages = [
        *MINI[:2],
        {"role": "assistant", "content": "Look.", "extra": {"actions": [{"command": "ls", "tool_call_id": "t1"}]}},
        {"role": "tool", "tool_call_id": "t1", "content": "a.py", "extra": {"returncode": 0}},
    ]
    mini(tmp_path / "x.traj.json", "x", "mini-swe-agent-1.1", messages)
    turn = one(tmp_path).trajectory.turns[0]
    assert (turn.calls[0].arguments["command"], turn.observations[0].text) == ("ls", "a.py")


def test_swe_agent_commands_become_tools_and_demonstrations_are_left_out(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "SETTING", "agent": "main"},
        {"role": "user", "content": "a demonstration", "is_demo": True},
        {"role": "user", "content": "Fix the bug."},
        {"role": "assistant", "content": "x"},
    ]
    state = json.dumps({"open_file": "/repo/a.py"})
    entries = [
        {"action": "open a.py 10\n", "observation": "[File]", "response": "Look.", "state": state, "query": []},
        {"action": "edit 1:1\nx = 1\nend_of_edit", "observation": "ok", "thought": "Change.", "state": state},
        {"action": "submit", "observation": "", "response": "", "state": state},
    ]
    dump(tmp_path / "a__b-2.traj", {"trajectory": entries, "history": history, "info": {"exit_status": "exit_cost"}})
    found = one(tmp_path)
    names = [turn.calls[0].name for turn in found.trajectory.turns]
    assert names == ["open", "edit", "submit"]
    assert found.trajectory.turns[1].calls[0].arguments["path"] == "/repo/a.py"
    assert (found.task.instruction, found.trajectory.stop) == ("Fix the bug.", StopReason.TOKEN_LIMIT)
    assert found.notes == {"demonstration messages": 1}


def test_tau_bench_lists_and_tau2_simulations(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "W1"}'}}
    talk = [
        {"role": "system", "content": "policy"},
        {"role": "user", "content": "Cancel my order."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "{}"},
        {"role": "assistant", "content": "Which one?"},
        {"role": "user", "content": "W1"},
    ]
    dump(tmp_path / "tau.json", [{"task_id": 3, "trial": 0, "reward": 0.0, "info": {}, "traj": talk}])
    second = [*talk[1:], {"role": "user", "content": "", "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}]}, {"role": "tool", "id": "u", "content": "on", "requestor": "user"}]  # fmt: skip
    row = {
        "task_id": "7",
        "trial": 1,
        "reward_info": {"reward": 1.0},
        "termination_reason": "user_stop",
        "messages": second,
    }
    dump(tmp_path / "tau2.json", {"info": {"agent_info": {"llm": "m2"}}, "tasks": [], "simulations": [row]})
    first, other = read(tmp_path)
    assert (first.task.id, first.outcome.passed, other.outcome.passed, other.model) == ("3", False, True, "m2")
    assert first.trajectory.turns[0].calls[0].arguments == {"order_id": "W1"}
    assert other.notes == {"tool calls of the user": 1, "tool results of the user": 1}


def test_a_field_map_and_missing_outcomes(tmp_path: Path) -> None:
    rows = [
        {
            "log": [{"role": "user", "content": "a"}, {"role": "assistant", "content": f"b{n}"}],
            "grade": grade,
            "name": "x",
        }
        for n, grade in enumerate([1, 0, None, "maybe"])
    ]
    path = dump_lines(tmp_path / "rows.jsonl", rows)
    found = read(path, messages="log", outcome="grade", task="name")
    assert [f.outcome.passed for f in found] == [True, False, None, None]
    assert {f.task.id for f in found} == {"x"}


def test_truncated_lines_and_invalid_json_are_counted(tmp_path: Path) -> None:
    good = json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})
    (tmp_path / "a.jsonl").write_text(f"{good}\nnot json\n{good[:40]}")
    scan = Scan([tmp_path])
    assert len(list(scan)) == 1
    assert scan.coverage.skipped == {"invalid JSON": 1, "truncated line": 1}


def claude(path: Path, rows: list[dict[str, Any]]) -> Path:
    return dump_lines(path, [{"sessionId": "s", "uuid": str(n), "version": "2"} | row for n, row in enumerate(rows)])


def test_claude_code_sessions(tmp_path: Path) -> None:
    tool = {"type": "tool_use", "id": "u1", "name": "Bash", "input": {"command": "ls"}}
    claude(
        tmp_path / "0a.jsonl",
        [
            {"type": "user", "message": {"role": "user", "content": "Sort it."}},
            {
                "type": "assistant",
                "message": {"id": "m1", "model": "c", "content": [{"type": "thinking", "thinking": "hm"}]},
            },
            {"type": "assistant", "message": {"id": "m1", "model": "c", "content": [tool]}},
            {
                "type": "user",
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "x", "is_error": True}],
                },
            },  # fmt: skip
            {"type": "assistant", "isSidechain": True, "message": {"id": "side", "content": "sub-agent"}},
            {"type": "system", "subtype": "compact_boundary", "message": {}},
            {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": "Summary of it all"}},
            {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat"}},
            {"type": "assistant", "message": {"id": "m2", "model": "c", "content": "Done."}},
            {"type": "user", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
            {"type": "user", "message": {"role": "user", "content": "Another task."}},
            {"type": "assistant", "message": {"id": "m3", "model": "c", "content": "Yes."}},
        ],
    )
    first, second = read(tmp_path)
    assert (len(first.trajectory.turns), first.trajectory.turns[0].reasoning) == (2, "hm")
    assert first.trajectory.turns[0].observations[0].error
    assert first.notes == {"lines of sub-agents": 1, "context compactions": 1}
    assert (second.task.instruction, second.model) == ("Another task.", "c")
    assert first.outcome.triage is Triage.MISSING


def test_codex_rollouts_with_and_without_the_envelope(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Sort it."}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command": ["bash", "-lc", "ls | wc -l"]}',
            "call_id": "c",
        },
        {"type": "function_call_output", "call_id": "c", "output": '{"output": "1", "metadata": {"exit_code": 2}}'},
    ]
    rows = [
        {"type": "session_meta", "payload": {"id": "one"}},
        {"type": "turn_context", "payload": {"model": "gpt-x"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Sort it."}},
        *({"type": "response_item", "payload": item} for item in items),
        {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "c", "stdout": "1"}},
        {"type": "compacted", "payload": {"message": "summary"}},
    ]
    dump_lines(tmp_path / "rollout-1.jsonl", rows)
    dump_lines(tmp_path / "rollout-2.jsonl", [{"id": "two", "timestamp": "t", "instructions": None}, *items])
    for found in read(tmp_path):
        (turn,) = found.trajectory.turns
        assert found.task.instruction == "Sort it."
        assert (turn.reasoning, turn.observations[0].text, turn.observations[0].error) == ("hm", "1", True)
        assert len(turn.observations) == 1


def test_codex_compressed(tmp_path: Path) -> None:
    import zstandard

    row = {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "Hello there."}}
    (tmp_path / "rollout-3.jsonl.zst").write_bytes(zstandard.compress(json.dumps(row).encode() + b"\n"))
    assert one(tmp_path).trajectory.turns[0].text == "Hello there."


def test_opencode_export_and_store(tmp_path: Path) -> None:
    tool = {
        "type": "tool",
        "tool": "bash",
        "callID": "c",
        "state": {"status": "error", "input": {"command": "ls"}, "error": "no"},
    }
    asked = [{"type": "text", "text": "Sort it."}, {"type": "text", "text": "injected", "synthetic": True}]
    said = [{"type": "text", "text": "Look."}, tool]
    infos = [{"role": "user"}, {"role": "assistant", "modelID": "m"}]
    messages = [{"info": info, "parts": parts} for info, parts in zip(infos, (asked, said), strict=True)]
    dump(tmp_path / "export.json", {"info": {"id": "ses_1"}, "messages": messages})
    with sqlite3.connect(tmp_path / "opencode.db") as db:
        db.execute("CREATE TABLE session (id TEXT, parent_id TEXT)")
        db.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT)")
        db.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
        for session, parent in (("s2", None), ("s3", "s2")):
            db.execute("INSERT INTO session VALUES (?, ?)", (session, parent))
            for n, (info, parts) in enumerate(zip(infos, (asked, said), strict=True)):
                db.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (f"{session}m{n}", session, n, json.dumps(info)))
                for k, part in enumerate(parts):
                    row = (f"{session}p{n}{k}", f"{session}m{n}", session, json.dumps(part))
                    db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    db.close()
    scan = Scan([tmp_path])
    found = list(scan)
    assert [f.task.instruction for f in found] == ["Sort it.", "Sort it."]
    assert all(f.trajectory.turns[0].observations[0].error for f in found)
    assert scan.coverage.skipped == {"sub-agent session, part of its parent": 1}


def test_verifiers_traces_follow_the_last_branch(tmp_path: Path) -> None:
    nodes = [
        {"id": 0, "parent": None, "message": {"role": "user", "content": "Q"}},
        {"id": 1, "parent": 0, "message": {"role": "assistant", "content": "left branch"}},
        {"id": 2, "parent": 0, "message": {"role": "assistant", "content": "right branch"}},
    ]
    good = {"task": {"key": "t"}, "nodes": nodes, "calls": [{"model": "m"}], "rewards": {"exact": {"score": 1.0, "weight": 1.0}}, "ok": True}  # fmt: skip
    dump_lines(
        tmp_path / "traces.jsonl",
        [
            good,
            good | {"rewards": {"exact": None}, "task": {"key": "u"}},
            {"traces": [good | {"ok": False, "errors": ["x"]}]},
        ],
    )
    found = read(tmp_path)
    assert [f.outcome.triage for f in found] == [Triage.VALID, Triage.UNVERIFIED, Triage.INFRASTRUCTURE]
    assert [turn.text for turn in found[0].trajectory.turns] == ["right branch"]


def test_terminal_bench_trials(tmp_path: Path) -> None:
    log = "root@c:/app# ls\nin.csv\nroot@c:/app# cat in.csv\n1,2\nroot@c:/app# \n"
    for name, resolved, mode in (("a", True, "agent_timeout"), ("b", None, "test_timeout"), ("c", False, "unset")):
        folder = tmp_path / "job" / name / f"{name}.1-of-1.x"
        (folder / "sessions").mkdir(parents=True)
        (folder / "sessions" / "agent.log").write_text(log)
        row = {
            "task_id": name,
            "trial_name": folder.name,
            "is_resolved": resolved,
            "failure_mode": mode,
            "instruction": "Do.",
        }
        dump(folder / "results.json", row)
    dump(tmp_path / "job" / "results.json", {"results": [{"task_id": "a", "trial_name": "x", "is_resolved": True}]})
    found = read(tmp_path)
    assert [(f.outcome.triage, f.outcome.passed) for f in found] == [
        (Triage.VALID, True),
        (Triage.UNVERIFIED, None),
        (Triage.VALID, False),
    ]
    assert [turn.calls[0].arguments["command"] for turn in found[0].trajectory.turns] == ["ls", "cat in.csv"]


def test_openhands_events_of_both_versions(tmp_path: Path) -> None:
    older = [
        {"source": "user", "action": "message", "args": {"content": "Fix."}},
        {
            "source": "agent",
            "action": "run",
            "args": {"command": "ls", "thought": "Look."},
            "tool_call_metadata": {"tool_call_id": "c", "function_name": "execute_bash"},
        },  # fmt: skip
        {
            "source": "agent",
            "observation": "run",
            "content": "a.py",
            "extras": {"metadata": {"exit_code": 1}},
            "tool_call_metadata": {"tool_call_id": "c"},
        },  # fmt: skip
    ]
    dump_lines(
        tmp_path / "output.jsonl", [{"instance_id": "a__b-1", "history": older, "test_result": {"resolved": True}}]
    )
    newer = [
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"type": "text", "text": "Fix."}]}},
        {
            "kind": "ActionEvent",
            "tool_name": "terminal",
            "tool_call_id": "c",
            "tool_call": {"name": "terminal", "arguments": '{"command": "ls"}'},
        },  # fmt: skip
        {
            "kind": "ObservationEvent",
            "tool_call_id": "c",
            "observation": {"content": [{"type": "text", "text": "a.py"}], "is_error": True},
        },  # fmt: skip
    ]
    dump(tmp_path / "v1.json", newer)
    for found in read(tmp_path):
        (turn,) = found.trajectory.turns
        assert (found.form, turn.calls[0].arguments, turn.observations[0].error) == (
            "openhands",
            {"command": "ls"},
            True,
        )
    assert read(tmp_path)[0].outcome.passed is True
