"""Files that the real programs wrote; see tests/fixtures/trajectories/README.md."""

from pathlib import Path

from arise.analyze.found import Found, Triage
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
