"""The other formats and their traps, each read through the scan that the command uses."""

import json
import zipfile
import zlib
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


def test_inspect_logs_compressed_with_zstandard(tmp_path: Path) -> None:
    """Inspect writes zip method 93 since 2026; Python 3.11 cannot read it."""
    import struct

    import zstandard

    path = inspect_log(tmp_path / "a.eval", [inspect_sample(1)])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    body, directory = b"", b""
    for name, data in members.items():
        packed, raw = zstandard.compress(data), name.encode()
        fields = (20, 0, 93, 0, 33, zlib.crc32(data), len(packed), len(data), len(raw))
        entry = struct.pack(
            "<4s6H3I5H2I", b"PK\x01\x02", 20, *fields[:5], *fields[5:8], len(raw), 0, 0, 0, 0, 0, len(body)
        )
        directory += entry + raw
        body += struct.pack("<4s5H3I2H", b"PK\x03\x04", *fields, 0) + raw + packed
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    assert one(path).outcome.passed is True


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


def test_submitted_is_not_success(tmp_path: Path) -> None:
    mini(tmp_path / "a__b-1" / "a__b-1.traj.json", "a__b-1")
    found = one(tmp_path)
    assert found.outcome.triage is Triage.MISSING
    assert "Submitted" in found.outcome.reason
    assert found.trajectory.turns[0].calls[0].arguments["command"] == "cat a.py"
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
        {"role": "tool", "tool_call_id": "t1", "content": "a.py", "extra": {"returncode": 2}},
    ]
    mini(tmp_path / "x.traj.json", "x", "mini-swe-agent-1.1", messages)
    turn = one(tmp_path).trajectory.turns[0]
    assert (turn.calls[0].arguments["command"], turn.observations[0].text) == ("ls", "a.py")
    assert turn.observations[0].error


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
    second = [
        *talk[1:],
        {
            "role": "user",
            "content": "",
            "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}],
        },
        {"role": "tool", "id": "u", "content": "on", "requestor": "user"},
    ]
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
