"""Files that the real programs wrote; see tests/fixtures/trajectories/README.md."""

import json
from collections import Counter
from pathlib import Path

import pytest

from arise.analyze.conversation import USER
from arise.analyze.found import Found, Options, Triage
from arise.analyze.scan import Scan
from arise.types import StopReason
from tests.trajectory_files import dump

FILES = Path(__file__).parents[2] / "fixtures" / "trajectories"


def only(name: str) -> Found:
    (found,) = Scan([FILES / name])
    return found


def test_a_session_of_claude_code() -> None:
    found = only("claude-code-2.1.197.jsonl")
    turns = found.trajectory.turns
    assert (found.form, found.model, found.task.instruction) == ("claude-code", "policy", "Write 42 to answer.txt.")
    assert [call.arguments["command"] for turn in turns for call in turn.calls][:3] == [
        "ls -la", "cat missing.txt", "echo 42 > answer.txt && cat answer.txt",
    ]  # fmt: skip
    assert [turn.observations[0].error for turn in turns[:3]] == [False, True, False]
    assert found.outcome.triage is Triage.MISSING


def test_a_trajectory_of_mini_swe_agent() -> None:
    found = only("mini-swe-agent-2.4.6.traj.json")
    turns = found.trajectory.turns
    assert (found.form, found.task.instruction) == ("mini-swe-agent", "Write 42 to answer.txt.")
    assert [len(turn.calls) for turn in turns] == [1, 1, 1, 1]
    assert turns[1].observations[0].error, "the exit code of a failed command"
    assert found.trajectory.stop is StopReason.FINISHED
    assert found.outcome.triage is Triage.MISSING, "submitting is not success"


def test_a_log_of_inspect_with_errors_limits_images_and_two_scorers() -> None:
    """Its members are compressed with Zstandard, and the message of a failed tool is next to its empty content."""
    found = {f.task.id: f for f in Scan([FILES / "inspect-0.3.285.eval"])}
    assert {name: f.outcome.passed for name, f in found.items()} == {
        "files/count": True, "files/owner": False, "files/endless": True, "files/picture": True,
    }  # fmt: skip
    failed = found["files/count"].trajectory.turns[1].observations[0]
    assert (failed.error, failed.text) == (True, "cat: missing.txt: No such file or directory")
    assert found["files/count"].trajectory.system_prompt == "You work with files."
    assert found["files/endless"].trajectory.stop is StopReason.TURN_LIMIT
    assert (found["files/picture"].notes["images"], found["files/picture"].model) == (1, "mockllm/model")
    strict = {f.task.id: f for f in Scan([FILES / "inspect-0.3.285.eval"], Options({"outcome": "strict"}))}
    assert strict["files/endless"].outcome.passed is False


def test_a_log_of_inspect_in_json() -> None:
    found = only("inspect-0.3.285.json")
    assert (found.form, found.task.id, found.outcome.passed) == ("inspect", "short/owner", False)
    assert [turn.text for turn in found.trajectory.turns] == ["Next.", "ANSWER: nobody"]


@pytest.mark.parametrize(
    "name",
    [
        "openinference-openai-0.1.66.jsonl", "openllmetry-openai-0.40.14.jsonl", "openllmetry-openai-0.62.4.jsonl",
        "opentelemetry-openai-v2-2.1b0.jsonl",
    ],
)  # fmt: skip
def test_spans_of_three_model_calls(name: str) -> None:
    """Every span repeats the history; the conversation is read once."""
    found = only(name)
    turns = found.trajectory.turns
    assert (found.form, found.model, found.task.instruction) == ("otel-spans", "test-model", "Write 42 to answer.txt.")
    assert [[call.arguments["command"] for call in turn.calls] for turn in turns] == [["ls"], ["cat missing.txt"], []]
    assert [[seen.text for seen in turn.observations] for turn in turns] == [
        ["in.csv"], ["cat: missing.txt: No such file or directory"], [],
    ]  # fmt: skip
    assert (turns[2].text, found.trajectory.system_prompt) == ("The answer is 42.", "You work in a shell.")


def commands(found: Found, name: str = "command") -> list[object]:
    return [call.arguments.get(name) for turn in found.trajectory.turns for call in turn.calls]


def errors(found: Found) -> list[bool]:
    return [seen.error for turn in found.trajectory.turns for seen in turn.observations if seen.call_id != USER]


def test_a_rollout_of_codex() -> None:
    """Its results begin with lines that differ between equal calls, and state the exit code there."""
    found = only("codex-0.169.0.jsonl")
    assert (found.form, found.model, found.task.instruction.strip()) == (
        "codex",
        "test-model",
        "Write 42 to answer.txt.",
    )
    assert commands(found, "cmd") == ["ls -la", "cat missing.txt", "echo 42 > answer.txt && cat answer.txt"]
    assert errors(found) == [False, True, False]
    assert found.trajectory.turns[2].observations[0].text == "42\n"


@pytest.mark.parametrize("name", ["opencode-1.18.33.json", "opencode-1.18.33-store.zip"])
def test_a_session_of_opencode(name: str) -> None:
    """A command that failed is a completed call: only its exit code tells."""
    found = only(name)
    assert (found.form, found.model, len(found.trajectory.turns)) == ("opencode", "oc", 4)
    assert errors(found) == [False, True, False, True]
    assert found.task.instruction == '"Write 42 to answer.txt."'


def test_a_trajectory_of_openhands_0() -> None:
    found = only("openhands-0.62.0.json")
    assert (found.form, found.task.instruction) == ("openhands", "Write 42 to answer.txt.")
    assert errors(found) == [False, True, True, False], "the editor's refusal is only in its text"
    assert found.trajectory.turns[2].calls[0].name == "view"


def test_a_conversation_of_openhands_1() -> None:
    found = only("openhands-1.58.0.zip")
    assert (found.form, found.model, found.task.id) == ("openhands", "openai/ohands", "832d522e")
    assert errors(found) == [False, True, True, True, False, False]
    assert found.trajectory.turns[0].calls[0].arguments == {"command": "ls -la"}, "summary and risk are not the agent's"


def test_traces_of_verifiers() -> None:
    """A scorer that broke is no verdict."""
    found = list(Scan([FILES / "verifiers-0.4.0.jsonl"]))
    assert Counter((f.outcome.triage, f.outcome.passed) for f in found) == {
        (Triage.VALID, True): 2, (Triage.VALID, False): 2, (Triage.INFRASTRUCTURE, None): 2,
    }  # fmt: skip
    assert {f.form for f in found} == {"verifiers"}
    assert (len({f.task.id for f in found}), {f.model for f in found}) == (3, {"test-model"})
    assert found[0].trajectory.turns[0].calls[0].arguments == {"first": 20, "second": 22}


def test_rollouts_of_prime_rl() -> None:
    """An episode is in `all` and, if it was trained on, in `effective`; one that failed at once has no trace."""
    scan = Scan([FILES / "prime-rl-559b447.zip"])
    found = list(scan)
    assert (scan.coverage.read, scan.coverage.duplicates, scan.coverage.skipped) == (14, 8, Counter())
    assert Counter((f.outcome.triage, f.outcome.passed) for f in found) == {
        (Triage.VALID, True): 4, (Triage.VALID, False): 4, (Triage.INFRASTRUCTURE, None): 6,
    }  # fmt: skip
    lost = [f for f in found if not f.trajectory.turns]
    assert [f.outcome.reason for f in lost] == ["SandboxError: the box did not start"] * 2
    assert {f.group for f in found} == {"sums"}
    assert all(f.source.startswith("prime-rl-559b447.zip!rollouts/step_") for f in found)


def test_results_of_verifiers_0() -> None:
    """Every call is a string of JSON, and examples are numbered."""
    found = list(Scan([FILES / "verifiers-0.1.9.jsonl"]))
    assert [(f.task.id, f.outcome.passed) for f in found] == [("0", True), ("0", True), ("1", False), ("1", False)]
    assert found[0].trajectory.turns[0].calls[0].arguments == {"first": 20, "second": 22}
    assert len({f.checksum for f in found}) == 2, "other tasks with the same number are other tasks"


def test_empty_fields_do_not_make_another_task(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Sort it."}, {"role": "assistant", "content": "Done."}]
    fields: list[dict[str, object]] = [{}, {"notes": None, "tags": []}, {"notes": "other"}]
    rows = [{"task_id": 3, "reward": 1, "traj": said, "info": {"task": {"user_id": "u", **more}}} for more in fields]
    dump(tmp_path / "runs.json", rows)
    one, same, other = (f.checksum for f in Scan([tmp_path]))
    assert one == same != other


def test_simulations_of_tau2() -> None:
    found = {f.task.id: f for f in Scan([FILES / "tau2-1.0.1.json"])}
    assert {name: f.outcome.passed for name, f in found.items()} == {
        "only_talk": True, "make_board": False, "broken": None,
    }  # fmt: skip
    assert found["broken"].outcome.triage is Triage.INFRASTRUCTURE
    board = found["make_board"]
    assert (board.form, board.group, board.model) == ("tau2", "mock", "openai/agent-model")
    assert board.task.instruction == "Please create a task Board. My id is user_1.", "the agent greets first"
    assert board.trajectory.system_prompt.startswith("Each task needs a title.")
    assert errors(board) == [False, True]


def test_simulations_of_tau2_in_separate_files(tmp_path: Path) -> None:
    document = json.loads((FILES / "tau2-1.0.1.json").read_text())
    for number, row in enumerate(document.pop("simulations")):
        dump(tmp_path / "simulations" / f"{number}.json", row)
    dump(tmp_path / "results.json", document)
    scan = Scan([tmp_path])
    assert {f.task.id: f.model for f in scan} == dict.fromkeys(
        ("only_talk", "make_board", "broken"), "openai/agent-model"
    )
    assert not scan.coverage.unrecognised


def test_a_trajectory_of_swe_agent() -> None:
    found = only("swe-agent-1.1.0.traj")
    assert (found.form, found.model) == ("swe-agent", "openai/test-model")
    assert [call.name for turn in found.trajectory.turns for call in turn.calls] == ["open", "bash", "bash", "submit"]
    assert found.outcome.triage is Triage.MISSING, "submitting is not success"


def test_a_job_of_terminal_bench() -> None:
    """Terminus states keystrokes in JSON; the last reply is only in the debug log of the last episode."""
    found = {f.task.id: f for f in Scan([FILES / "terminal-bench-0.2.18.zip"])}
    assert found["no-verdict"].outcome.triage is Triage.UNVERIFIED
    solved = found["write-answer"]
    assert (solved.outcome.passed, solved.model) == (True, "test-model")
    assert commands(solved, "keystrokes") == ["ls -la", "cat missing.txt", "echo 42 > answer.txt\ncat answer.txt"]
    assert solved.trajectory.turns[1].observations[0].text.endswith("No such file or directory\nroot@box:/app#")
    assert solved.trajectory.turns[-1].text.startswith("Done: answer.txt contains 42.")
