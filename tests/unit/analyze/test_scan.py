"""The scan: mixed folders, archives, copies, junk, spans, big files, and ARISE's own records."""

import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from arise.analyze import archives
from arise.analyze.found import Options
from arise.analyze.scan import Scan
from tests.trajectory_files import POINTER, chat, dump, dump_lines, inspect_log, inspect_sample, trial


def test_a_mixed_folder_is_read_in_a_fixed_order(tmp_path: Path) -> None:
    trial(tmp_path / "job" / "a__1")
    inspect_log(tmp_path / "logs" / "x.eval", [inspect_sample(1), inspect_sample(2)])
    dump_lines(tmp_path / "chats.jsonl", [chat("t", 1.0, reads_back=True)])
    (tmp_path / "big.json").write_text(POINTER)
    (tmp_path / "notes.json").write_text('{"a": 1}')
    (tmp_path / "README.md").write_text("nothing")
    scan = Scan([tmp_path])
    assert [(found.form, found.source) for found in scan] == [
        ("openai-messages", "chats.jsonl:1"),
        ("harbor", "job/a__1"),
        ("inspect", "logs/x.eval!samples/1_epoch_1.json"),
        ("inspect", "logs/x.eval!samples/2_epoch_1.json"),
    ]
    assert dict(scan.coverage.unrecognised) == {".json": 1}
    assert sum(scan.coverage.skipped.values()) == 1


def test_copies_are_counted_once_and_equal_attempts_of_one_file_are_several(tmp_path: Path) -> None:
    rows = [chat("t", 1.0, reads_back=True)] * 3
    for name in ("a.jsonl", "b.jsonl"):
        dump_lines(tmp_path / name, rows)
    trial(tmp_path / "one" / "x__1")
    trial(tmp_path / "two" / "x__1")
    scan = Scan([tmp_path])
    assert len(list(scan)) == 4
    assert scan.coverage.duplicates == 4


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tar.xz"])
def test_archives_are_read_under_their_own_name(tmp_path: Path, name: str) -> None:
    source = trial(tmp_path / "src" / "x__1").parent
    path = tmp_path / name
    if name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            for file in source.rglob("*"):
                archive.write(file, file.relative_to(source))
    else:
        modes: dict[str, Any] = {"a.tar": "w", "a.tar.gz": "w:gz", "a.tar.xz": "w:xz"}
        with tarfile.open(path, modes[name]) as packed:
            packed.add(source, arcname="job")
    (found,) = Scan([path])
    assert found.source.startswith(f"{name}!")
    assert found.source.endswith("x__1")
    assert found.outcome.passed is False


def test_archive_members_cannot_climb_out_link_or_fill_the_disk(tmp_path: Path) -> None:
    row = json.dumps(chat("t", 1.0, reads_back=True))
    path = tmp_path / "evil.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("../out.jsonl", "/tmp/out.jsonl", "good.jsonl"):
            file = tmp_path / "member"
            file.write_text(row + "\n")
            archive.add(file, arcname=name)
        link = tarfile.TarInfo("link.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    (tmp_path / "member").unlink()
    assert [found.source for found in Scan([path])] == ["evil.tar!good.jsonl:1"]
    assert not (tmp_path.parent / "out.jsonl").exists()
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.json", b"0" * 5_000_000)
    with pytest.raises(ValueError, match="larger than the cap"), archives.unpacked(bomb, most_bytes=1_000_000):
        pass


def test_a_damaged_archive_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        file = tmp_path / "big.bin"
        file.write_bytes(os.urandom(200_000))
        archive.add(file, arcname="big.jsonl")
    path.write_bytes(path.read_bytes()[:100_000])
    scan = Scan([path])
    assert list(scan) == []
    assert "archive cannot be read" in next(iter(scan.coverage.skipped))


def test_instructions_by_task_id_replace_recorded_ones(tmp_path: Path) -> None:
    dump_lines(tmp_path / "a.jsonl", [chat("t", 1.0, reads_back=True)])
    (found,) = Scan([tmp_path], Options(instructions={"t": "The real instruction."}))
    assert found.task.instruction == "The real instruction."


def openinference(number: int, asked: list[tuple[str, str]], said: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "m", "session.id": "s"}
    for place, (role, text) in enumerate(asked):
        attributes |= {f"llm.input_messages.{place}.message.role": role}
        attributes |= {f"llm.input_messages.{place}.message.content": text}
    attributes |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": said}
    call = "llm.output_messages.0.message.tool_calls.0.tool_call"
    attributes |= {
        f"{call}.function.name": "bash",
        f"{call}.function.arguments": '{"command": "ls"}',
        f"{call}.id": f"c{number}",
    }
    return {
        "name": "llm",
        "context": {"trace_id": "t", "span_id": str(number)},
        "start_time": f"2026-01-01T00:00:0{number}",
        "attributes": attributes,
    }


def test_spans_repeat_their_history_and_are_read_once(tmp_path: Path) -> None:
    history = [("system", "policy"), ("user", "Sort it.")]
    rows = []
    for number in range(3):
        rows.append(openinference(number, history, f"reply {number}"))
        history = [*history, ("assistant", f"reply {number}"), ("tool", f"result {number}")]
    dump_lines(tmp_path / "spans.jsonl", rows[::-1])
    (found,) = Scan([tmp_path])
    assert [turn.text for turn in found.trajectory.turns] == ["reply 0", "reply 1", "reply 2"]
    assert [turn.observations[0].text for turn in found.trajectory.turns[:2]] == ["result 0", "result 1"]
    assert (found.task.instruction, found.model, found.trajectory.id) == ("Sort it.", "m", "s")


def test_genai_spans_in_otlp_and_spans_without_content(tmp_path: Path) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Sort it."}]}]
    said = [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Look."},
                {"type": "tool_call", "id": "c", "name": "bash", "arguments": {"command": "ls"}},
            ],
        }
    ]
    more = [*asked, *said, {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "in.csv"}]}]
    last = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]

    def span(number: int, inputs: Any, outputs: Any) -> dict[str, Any]:
        values = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "conv", "gen_ai.request.model": "m"}
        values |= {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps(outputs)}
        rows = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
        return {"traceId": "t", "spanId": str(number), "startTimeUnixNano": str(number), "attributes": rows}

    spans = [span(1, asked, said), span(2, more, last)]
    dump(tmp_path / "otlp.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    bare = {
        "traceId": "u",
        "spanId": "9",
        "startTimeUnixNano": "9",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    }
    dump(tmp_path / "silent.json", {"resourceSpans": [{"scopeSpans": [{"spans": [bare]}]}]})
    scan = Scan([tmp_path])
    (found,) = scan
    assert [len(turn.calls) for turn in found.trajectory.turns] == [1, 0]
    assert found.trajectory.turns[0].observations[0].text == "in.csv"
    assert list(scan.coverage.skipped) == ["spans without message content: content capture was off"]


def test_a_record_of_an_endpoint_is_messages(tmp_path: Path) -> None:
    """`arise endpoint --record` writes one conversation per line."""
    row = {"id": "conv-1", "model": "m", "messages": chat("t", None, reads_back=True)["messages"]}
    dump_lines(tmp_path / "record" / "conversations.jsonl", [row])
    (found,) = Scan([tmp_path])
    assert (found.task.id, found.model, found.outcome.passed) == ("conv-1", "m", None)


def test_one_trajectory_of_100_mb_is_read(tmp_path: Path) -> None:
    row = chat("t", 0.0, reads_back=False)
    row["messages"][2]["content"] = "x" * 100_000_000
    dump_lines(tmp_path / "a.jsonl", [row])
    (found,) = Scan([tmp_path])
    assert len(found.trajectory.turns[0].observations[0].text) == 100_000_000


def test_a_reader_that_fails_costs_one_file(tmp_path: Path) -> None:
    dump(tmp_path / "a.traj", {"trajectory": [{"action": "ls", "state": {"open_file": 1}}], "history": 5, "info": []})
    dump(tmp_path / "b.json", {"info": 5, "messages": [{"info": 1, "parts": 2}], "parts": 1})
    dump_lines(tmp_path / "c.jsonl", [chat("t", 1.0, reads_back=True)])
    scan = Scan([tmp_path])
    assert "openai-messages" in [found.form for found in scan]
    assert all(reason for reason in scan.coverage.skipped)


def test_a_file_in_no_known_format_is_named_with_its_fields(tmp_path: Path) -> None:
    dump_lines(tmp_path / "steps.jsonl", [{"step": 1, "action": "start", "details": {}}])
    scan = Scan([tmp_path])
    assert list(scan) == []
    assert scan.coverage.fields == {".jsonl": "steps.jsonl: step, action, details"}
