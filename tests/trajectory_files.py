"""Small trajectory files in the formats that `arise analyze` reads, written by hand after the formats' descriptions."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
TEST_RUN = "============ test session starts ============\ncollected 2 items\n1 failed, 1 passed\n"


def dump(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def dump_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def atif(entries: Sequence[Mapping[str, Any]], version: str = "ATIF-v1.6", **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, **entry} for number, entry in enumerate(entries, start=1)]
    agent = {"name": "terminus-2", "version": "2.0", "model_name": "test-model"}
    return {"schema_version": version, "session_id": "s-1", "agent": agent, "steps": numbered} | more


def shell_entry(command: str, output: str, number: int = 1) -> dict[str, Any]:
    name = f"call_{number}"
    return {
        "source": "agent",
        "message": "Next command.",
        "tool_calls": [{"tool_call_id": name, "function_name": "bash", "arguments": {"command": command}}],
        "observation": {"results": [{"source_call_id": name, "content": output}]},
    }


ENTRIES = (
    {"source": "system", "message": "You work in a shell."},
    {"source": "user", "message": "Sort in.csv into out.csv. The result must have 3 lines."},
    shell_entry("ls", "in.csv", 1),
    shell_entry("sort in.csv > out.csv", "", 2),
    {"source": "agent", "message": "Done."},
)


def trial(
    folder: Path,
    *,
    task: str = "sort-csv",
    reward: float | None = 0.0,
    fault: str = "",
    stdout: str | None = TEST_RUN,
    entries: Sequence[Mapping[str, Any]] | None = ENTRIES,
    checksum: str = "abc",
    **more: Any,
) -> Path:
    """A Harbor trial folder."""
    rewards = None if reward is None else {"rewards": {"reward": reward}}
    exception = {"exception_type": fault, "exception_message": "text"} if fault else None
    dump(
        folder / "result.json",
        {
            "task_name": task,
            "trial_name": folder.name,
            "task_checksum": checksum,
            "source": "bench",
            "agent_info": {"name": "terminus-2", "model_info": None},
            "verifier_result": rewards,
            "exception_info": exception,
        }
        | more,
    )
    dump(folder / "config.json", {})
    (folder / "agent").mkdir(exist_ok=True)
    if entries is not None:
        dump(folder / "agent" / "trajectory.json", atif(entries))
    if stdout is not None:
        (folder / "verifier").mkdir(exist_ok=True)
        (folder / "verifier" / "test-stdout.txt").write_text(stdout)
    return folder


def inspect_sample(name: int, value: Any = "C", **more: Any) -> dict[str, Any]:
    call = {"id": f"c{name}", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}
    scores = {} if value is None else {"match": {"value": value, "answer": "x"}}
    return {
        "id": name,
        "epoch": 1,
        "input": "List the files.",
        "target": "x",
        "messages": [
            {"role": "system", "content": "attachment://aaaa"},
            {"role": "user", "content": "List the files."},
            {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}], "tool_calls": [call]},
            {"role": "tool", "content": "in.csv", "tool_call_id": f"c{name}"},
            {"role": "assistant", "content": f"There is one file, {name}."},
        ],
        "scores": scores,
        "attachments": {"aaaa": "the whole system prompt"},
    } | more


def inspect_log(path: Path, samples: Sequence[Mapping[str, Any]], header: str = "header.json") -> Path:
    """An `.eval` archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"version": 2, "status": "success", "eval": {"task": "files", "model": "m", "run_id": path.stem}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(header, json.dumps(about))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def chat(task: str, reward: float | None, *, reads_back: bool, extra: int = 0) -> dict[str, Any]:
    """One conversation of OpenAI's shape; whether it reads back what it wrote is the behaviour under test."""
    commands = ["ls", "head -3 in.csv", *(f"wc -l part{n}.csv" for n in range(extra)), "sort in.csv > out.csv"]
    commands += ["cat out.csv"] if reads_back else []
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Task {task}: sort in.csv and write the result to out.csv."}
    ]
    for number, command in enumerate(commands):
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "function": function}]},
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": "in.csv" if command == "ls" else f"line {number}",
            },
        ]
    messages.append({"role": "assistant", "content": "I am finished with it."})
    return {"task_id": task, "messages": messages} | ({} if reward is None else {"reward": reward})


def contrast(path: Path, tasks: int = 12) -> Path:
    """Attempts in which failing goes with not reading back, within every task."""
    rows = []
    for number in range(tasks):
        rows += [chat(f"t{number}", 0.0, reads_back=False, extra=n) for n in range(2)]
        rows += [chat(f"t{number}", 1.0, reads_back=True, extra=n) for n in range(2)]
    rows += [chat("t0", 1.0, reads_back=False, extra=3), chat("t1", 0.0, reads_back=True, extra=3)]
    return dump_lines(path, rows)
