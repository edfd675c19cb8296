"""Files that the real programs wrote; see tests/fixtures/trajectories/README.md."""

from pathlib import Path

import pytest

from arise.analyze.found import Found, Options, Triage
from arise.analyze.scan import Scan
from arise.types import StopReason

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
    """Its members are compressed with Zstandard, and the message of a failed tool is beside its empty content."""
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
