"""Sessions and traces of agents and trainers: Claude Code, Codex, opencode, verifiers, terminal-bench 1, OpenHands."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from arise.analyze.found import Found, Triage
from arise.analyze.scan import Scan
from tests.trajectory_files import dump, dump_lines


def read(path: Path) -> list[Found]:
    return list(Scan([path]))


def one(path: Path) -> Found:
    (found,) = read(path)
    return found


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
            },
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
    good = {
        "task": {"key": "t"},
        "nodes": nodes,
        "calls": [{"model": "m"}],
        "rewards": {"exact": {"score": 1.0, "weight": 1.0}},
        "ok": True,
    }
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
        },
        {
            "source": "agent",
            "observation": "run",
            "content": "a.py",
            "extras": {"metadata": {"exit_code": 1}},
            "tool_call_metadata": {"tool_call_id": "c"},
        },
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
        },
        {
            "kind": "ObservationEvent",
            "tool_call_id": "c",
            "observation": {"content": [{"type": "text", "text": "a.py"}], "is_error": True},
        },
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


def test_a_summary_of_terminal_bench_under_another_name(tmp_path: Path) -> None:
    """Next to its trials it only repeats them."""
    row = {"trial_name": "a.1-of-1.x", "task_id": "a", "instruction": "Sort it.", "is_resolved": True}
    dump(tmp_path / "2025-08-25__results.json", {"id": "j", "results": [row], "n_resolved": 1})
    (found,) = read(tmp_path)
    assert (found.form, found.outcome.passed, found.notes) == ("terminal-bench-1", True, {"no trajectory": 1})
    dump(tmp_path / "a" / "a.1-of-1.x" / "results.json", row)
    scan = Scan([tmp_path])
    assert [f.source for f in scan] == ["a/a.1-of-1.x"]
    assert not scan.coverage.unrecognised
