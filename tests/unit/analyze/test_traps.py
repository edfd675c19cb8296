"""Traps of the formats that have no test elsewhere; docs/guides/analyze.md lists all of them with their tests."""

from pathlib import Path
from typing import Any

import pytest

from arise.analyze.found import Found, Triage
from arise.analyze.scan import Scan
from arise.types import StopReason
from tests.trajectory_files import ENTRIES, atif, dump, dump_lines, inspect_log, inspect_sample


def one(path: Path) -> Found:
    (found,) = Scan([path])
    return found


@pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(9)])
def test_every_version_of_atif(tmp_path: Path, version: str) -> None:
    dump(tmp_path / "trajectory.json", atif(ENTRIES, version))
    assert len(one(tmp_path).trajectory.turns) == 3


def test_a_sub_agent_in_another_file_is_a_reference(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "task", "arguments": {"prompt": "look"}}
    reference = [{"session_id": "x", "trajectory_path": "sub/trajectory.json"}]
    result = {"source_call_id": "c", "content": "found it", "subagent_trajectory_ref": reference}
    entry = {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]}}
    dump(tmp_path / "trajectory.json", atif([*ENTRIES[:2], entry]))
    found = one(tmp_path)
    assert (found.notes, found.trajectory.turns[0].observations[0].text) == ({"sub-agent references": 1}, "found it")


def test_an_inspect_sample_whose_messages_lie_in_the_pool(tmp_path: Path) -> None:
    sample = inspect_sample(1)
    sample["events_data"] = {"messages": sample.pop("messages"), "calls": []}
    assert one(inspect_log(tmp_path / "a.eval", [sample])).trajectory.turns[0].observations[0].text == "in.csv"


def test_the_stream_of_claude_code_and_a_sub_agents_own_file(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "u", "content": "a"}
    rows: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x", "tools": []},
        {"type": "assistant", "session_id": "s", "message": {"id": "m", "content": [use]}},
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": [result]}},
        {"type": "assistant", "session_id": "s", "parent_tool_use_id": "u", "message": {"id": "n", "content": "sub"}},
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "session_id": "s"},
    ]
    dump_lines(tmp_path / "claude-code.txt", rows)
    side = {"type": "assistant", "sessionId": "s", "isSidechain": True, "message": {"id": "k", "content": "inner"}}
    dump_lines(tmp_path / "agent-1.jsonl", [side])
    scan = Scan([tmp_path])
    (found,) = scan
    assert (found.model, found.trajectory.stop, len(found.trajectory.turns)) == ("claude-x", StopReason.TURN_LIMIT, 1)
    assert found.outcome.triage is Triage.MISSING, "the agent's own end is no verdict"
    assert scan.coverage.skipped == {"sub-agent session, part of its parent": 1}


def test_a_fork_of_codex_is_noted(tmp_path: Path) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    meta = {"type": "session_meta", "payload": {"id": "b", "history_base": {"thread_id": "a"}}}
    dump_lines(tmp_path / "rollout-b.jsonl", [meta, {"type": "response_item", "payload": said}])
    assert one(tmp_path).notes == {"forked sessions": 1}


def test_openhands_keeps_one_file_per_event(tmp_path: Path) -> None:
    """Version 0 numbers its files without leading zeros, so 10 comes after 9."""
    old, new = tmp_path / "old" / "events", tmp_path / "new" / "events"
    dump(old / "0.json", {"id": 0, "timestamp": "t", "source": "user", "action": "message", "args": {"content": "Fix"}})
    for number in range(1, 12):
        action = {"action": "run", "args": {"command": f"echo {number}"}}
        dump(old / f"{number}.json", {"id": number, "timestamp": "t", "source": "agent", **action})
    asked = {"llm_message": {"role": "user", "content": [{"type": "text", "text": "Fix"}]}}
    dump(new / "event-00000-a.json", {"kind": "MessageEvent", "source": "user", **asked})
    call = {"id": "c", "name": "terminal", "arguments": '{"command": "ls"}'}
    action = {"tool_name": "terminal", "tool_call_id": "c", "tool_call": call}
    dump(new / "event-00001-b.json", {"kind": "ActionEvent", "source": "agent", "thought": [], **action})
    second, first = Scan([tmp_path])
    commands = [turn.calls[0].arguments["command"] for turn in first.trajectory.turns]
    assert commands == [f"echo {number}" for number in range(1, 12)]
    assert (second.task.id, second.task.instruction, len(second.trajectory.turns)) == ("new", "Fix", 1)


def verifiers_trace(**more: Any) -> dict[str, Any]:
    """A trace of verifiers 0.4: nodes have no id, `parent` is a place in the list."""
    nodes = [
        {"parent": None, "message": {"role": "system", "content": "S"}, "sampled": False},
        {"parent": 0, "message": {"role": "user", "content": "Q"}, "sampled": False},
        {"parent": 1, "message": {"role": "assistant", "content": "an example, written by hand"}, "sampled": False},
        {"parent": 2, "message": {"role": "user", "content": "now you"}, "sampled": False},
        {"parent": 3, "message": {"role": "assistant", "content": "42"}, "sampled": True},
    ]
    task = {"type": "T", "data": {"idx": 7}, "key": None}
    rewards = {"exact": {"score": 1.0, "weight": 1.0}}
    return {"id": "t", "task": task, "nodes": nodes, "rewards": rewards, "ok": True, "errors": []} | more


def test_verifiers_traces_after_a_retry_and_with_supplied_messages(tmp_path: Path) -> None:
    """`errors` holds those of every try, and an agent message that no model wrote is not the agent's."""
    trace = verifiers_trace(errors=[{"type": "ProviderError", "message": "503"}])
    dump_lines(tmp_path / "traces.jsonl", [{"id": "e", "traces": [trace]}])
    found = one(tmp_path)
    assert (found.outcome.passed, found.task.id) == (True, "7")
    assert [turn.text for turn in found.trajectory.turns] == ["42"]
    assert found.notes == {"agent messages supplied by the prompt": 1}


def test_two_rollouts_of_prime_rl_that_say_the_same_are_two(tmp_path: Path) -> None:
    """A policy that has learned a task answers alike in every step; a copy has the same id."""
    for step, name in ((0, "a"), (1, "b")):
        for subset in ("all", "effective"):
            place = tmp_path / "rollouts" / f"step_{step}" / "train" / subset / "traces.jsonl"
            dump_lines(place, [{"id": f"e{name}", "traces": [verifiers_trace(id=name)]}])
    scan = Scan([tmp_path])
    assert (len(list(scan)), scan.coverage.duplicates) == (2, 2)


def test_a_judge_within_an_episode_is_not_the_agent(tmp_path: Path) -> None:
    solver = verifiers_trace(id="solver", agent={"name": "solver", "trainable": True})
    judge = verifiers_trace(id="judge", rewards={}, agent={"name": "judge", "trainable": False})
    dump_lines(tmp_path / "traces.jsonl", [{"id": "e", "traces": [judge, solver]}])
    assert one(tmp_path).trajectory.id == "solver"


def test_a_file_that_begins_with_failed_episodes_is_read(tmp_path: Path) -> None:
    failed = {"id": "e", "env": {"id": "v"}, "task": {"key": "k"}, "ok": False, "traces": [],
              "errors": [{"type": "SandboxError", "message": "no box"}]}  # fmt: skip
    episodes = [failed | {"id": f"e{n}"} for n in range(3)]
    dump_lines(tmp_path / "traces.jsonl", [*episodes, {"traces": [verifiers_trace()]}])
    found = list(Scan([tmp_path]))
    assert [f.outcome.triage for f in found] == [Triage.INFRASTRUCTURE] * 3 + [Triage.VALID]


@pytest.mark.parametrize(
    ("more", "triage", "passed"),
    [
        ({"ok": False, "errors": [{"type": "SandboxError"}]}, Triage.INFRASTRUCTURE, None),
        ({"ok": False, "stop_condition": "agent_timeout"}, Triage.TIME_LIMIT, None),
        ({"stop_condition": "agent_timeout", "rewards": {"a": {"score": 0.0}}}, Triage.TIME_LIMIT, False),
        ({"stop_condition": "agent_timeout"}, Triage.VALID, True),
        ({"rewards": {}}, Triage.MISSING, None),
    ],
)
def test_how_a_verifiers_trace_ended(tmp_path: Path, more: Any, triage: Triage, passed: bool | None) -> None:
    dump_lines(tmp_path / "traces.jsonl", [verifiers_trace(**more)])
    outcome = one(tmp_path).outcome
    assert (outcome.triage, outcome.passed) == (triage, passed)


def test_rl_dumps_are_flat_text(tmp_path: Path) -> None:
    row = {"input": "user\nSort it.\nassistant\n", "output": "Done.", "gts": "x", "score": 0.0, "step": 3}
    dump_lines(tmp_path / "3.jsonl", [row])
    found = one(tmp_path)
    assert (found.outcome.passed, found.trajectory.turns[0].text, found.model) == (False, "Done.", "")


def span(number: int, attributes: dict[str, Any], events: Any = ()) -> dict[str, Any]:
    return {
        "traceId": "t", "spanId": str(number), "startTimeUnixNano": str(number), "events": list(events),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }  # fmt: skip


def test_two_results_in_one_message_answer_two_calls(tmp_path: Path) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system_instructions": '[{"type": "text", "content": "Policy."}]'}
    asked = '[{"role": "user", "parts": [{"type": "text", "content": "Sort."}]}'
    calls = ", ".join(f'{{"type": "tool_call", "id": "c{n}", "name": "bash", "arguments": {{}}}}' for n in (1, 2))
    said = f'{{"role": "assistant", "parts": [{calls}]}}'
    results = ", ".join(f'{{"type": "tool_call_response", "id": "c{n}", "response": "r{n}"}}' for n in (2, 1))
    done = '[{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]'
    after = f'{asked}, {said}, {{"role": "tool", "parts": [{results}]}}]'
    spans = [
        span(1, chat | {"gen_ai.input.messages": f"{asked}]", "gen_ai.output.messages": f"[{said}]"}),
        span(2, chat | {"gen_ai.input.messages": after, "gen_ai.output.messages": done}),
    ]
    dump(tmp_path / "otlp.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    found = one(tmp_path)
    assert [(seen.call_id, seen.text) for seen in found.trajectory.turns[0].observations] == [
        ("c2", "r2"),
        ("c1", "r1"),
    ]
    assert found.trajectory.system_prompt == "Policy."


def test_messages_in_events_of_the_span(tmp_path: Path) -> None:
    """Conventions up to 1.36: one event per message; some exporters put the body into one attribute as JSON."""
    calls = '[{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]'

    def event(name: str, **facts: str) -> dict[str, Any]:
        rows = [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]
        return {"name": f"gen_ai.{name}", "timeUnixNano": "1", "attributes": rows}

    events = [
        event("user.message", content="Sort."),
        event("choice", index="0", message=f'{{"content": "Look.", "tool_calls": {calls}}}'),
    ]
    later = [
        event("user.message", content="Sort."),
        event("assistant.message", content="Look.", tool_calls=calls),
        event("tool.message", **{"gen_ai.event.content": '{"id": "c", "content": "in.csv"}'}),
        event("choice", index="0", message="Done."),
    ]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    spans = [span(1, chat, events), span(2, chat, later)]
    dump(tmp_path / "otlp.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    turns = one(tmp_path).trajectory.turns
    assert [(turn.text, len(turn.calls)) for turn in turns] == [("Look.", 1), ("Done.", 0)]
    assert turns[0].observations[0].text == "in.csv"
