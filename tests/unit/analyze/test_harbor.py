"""Harbor trials and ATIF documents: every trap of the format that is handled, and what a reward on file is worth."""

from pathlib import Path
from typing import Any

import pytest

from arise.analyze.found import Found, Triage
from arise.analyze.scan import Scan
from tests.trajectory_files import ENTRIES, POINTER, atif, dump, dump_lines, shell_entry, trial


def read(path: Path) -> list[Found]:
    return list(Scan([path]))


def one(path: Path) -> Found:
    (found,) = read(path)
    return found


def test_a_trial_gives_task_checksum_model_turns_and_verdict(tmp_path: Path) -> None:
    found = one(trial(tmp_path / "job" / "sort-csv__abc1234"))
    assert (found.task.id, found.checksum, found.model, found.form) == ("sort-csv", "abc", "test-model", "harbor")
    assert found.task.instruction.startswith("Sort in.csv")
    assert [call.arguments["command"] for turn in found.trajectory.turns for call in turn.calls] == [
        "ls",
        "sort in.csv > out.csv",
    ]
    assert found.trajectory.turns[0].observations[0].text == "in.csv"
    assert (found.outcome.triage, found.outcome.passed) == (Triage.VALID, False)


@pytest.mark.parametrize(
    ("reward", "fault", "triage", "passed"),
    [
        (1.0, "", Triage.VALID, True),
        (1.0, "AgentTimeoutError", Triage.VALID, True),
        (0.0, "AgentTimeoutError", Triage.TIME_LIMIT, False),
        (None, "AgentTimeoutError", Triage.TIME_LIMIT, None),
        (None, "RewardFileNotFoundError", Triage.UNVERIFIED, None),
        (0.0, "VerifierTimeoutError", Triage.UNVERIFIED, None),
        (None, "EnvironmentStartTimeoutError", Triage.INFRASTRUCTURE, None),
        (0.0, "InternalServerError", Triage.INFRASTRUCTURE, None),
        (0.0, "NonZeroAgentExitCodeError", Triage.VALID, False),
        (None, "NonZeroAgentExitCodeError", Triage.MISSING, None),
        (None, "", Triage.MISSING, None),
    ],
)
def test_outcomes_are_triaged(tmp_path: Path, reward: float | None, fault: str, triage: Triage, passed: Any) -> None:
    outcome = one(trial(tmp_path / "t__1", reward=reward, fault=fault)).outcome
    assert (outcome.triage, outcome.passed) == (triage, passed)


@pytest.mark.parametrize(
    ("stdout", "triage"),
    [
        (
            "curl: (6) Could not resolve host: astral.sh\n/tests/test.sh: line 9: uvx: command not found\n",
            Triage.UNVERIFIED,
        ),
        ("", Triage.UNVERIFIED),
        ("test session starts\ncollected 1 item\nFAILED x: Could not resolve host\n", Triage.VALID),
        ("score: 0\n", Triage.VALID),
    ],
)
def test_a_reward_of_zero_is_no_verdict_where_the_tests_never_ran(tmp_path: Path, stdout: str, triage: Triage) -> None:
    outcome = one(trial(tmp_path / "t__1", stdout=stdout)).outcome
    assert outcome.triage is triage
    assert outcome.reward == 0.0


def test_structured_test_results_prove_that_the_tests_ran(tmp_path: Path) -> None:
    folder = trial(tmp_path / "t__1", stdout="")
    dump(folder / "verifier" / "ctrf.json", {"results": {"tests": [{"name": "a", "status": "failed"}]}})
    assert one(folder).outcome.triage is Triage.VALID


def test_copied_context_and_compactions_are_no_turns(tmp_path: Path) -> None:
    entries = [
        *ENTRIES[:3],
        {"source": "system", "message": "summary", "extra": {"context_management": {"kind": "compaction"}}},
        shell_entry("ls", "in.csv", 1) | {"is_copied_context": True},
        *ENTRIES[3:],
    ]
    found = one(trial(tmp_path / "t__1", entries=entries))
    assert len(found.trajectory.turns) == 3
    assert found.notes == {"copied context": 1, "context compactions": 1}


def test_a_continuation_is_part_of_its_trajectory(tmp_path: Path) -> None:
    dump(tmp_path / "trajectory.json", atif(ENTRIES[:3], continued_trajectory_ref="trajectory.cont-1.json"))
    copied = [entry | {"is_copied_context": True} for entry in ENTRIES[:3]]
    dump(tmp_path / "trajectory.cont-1.json", atif([*copied, *ENTRIES[3:]]))
    assert len(one(tmp_path).trajectory.turns) == 3


def test_multi_step_trials_are_one_attempt(tmp_path: Path) -> None:
    folder = trial(tmp_path / "t__1", entries=None)
    for name in ("one", "two"):
        dump(folder / "steps" / name / "agent" / "trajectory.json", atif(ENTRIES))
    found = one(folder)
    assert len(found.trajectory.turns) == 6
    assert found.trajectory.turns[2].observations[-1].text.startswith("Sort in.csv")


def test_embedded_sub_agents_are_counted_and_images_marked(tmp_path: Path) -> None:
    picture = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
    ]
    entries = [ENTRIES[1], shell_entry("ls", "in.csv") | {"observation": {"results": [{"content": picture}]}}]
    dump(tmp_path / "a.json", atif(entries, "ATIF-v1.7", subagent_trajectories=[atif(ENTRIES)]))
    found = one(tmp_path)
    assert found.notes == {"images": 1, "embedded sub-agent trajectories": 1}
    assert found.trajectory.turns[0].observations[0].text == "see\n[image]"


def test_the_variant_without_the_versions_prefix_is_read(tmp_path: Path) -> None:
    dump(tmp_path / "a.json", atif(ENTRIES, "1.4") | {"agent": {"name": "x", "model": "other"}})
    assert one(tmp_path).model == "other"


def test_pointers_are_counted_and_leave_the_outcome(tmp_path: Path) -> None:
    folder = trial(tmp_path / "t__1")
    (folder / "agent" / "trajectory.json").write_text(POINTER)
    (folder / "trial.log").write_text(POINTER)
    found = one(folder)
    assert found.trajectory.turns == ()
    assert found.outcome.passed is False
    assert found.notes["trajectories behind Git LFS pointers"] == 1


def test_a_trial_whose_result_is_a_pointer_is_skipped_with_its_reason(tmp_path: Path) -> None:
    folder = trial(tmp_path / "t__1")
    (folder / "result.json").write_text(POINTER)
    scan = Scan([tmp_path])
    assert list(scan) == []
    assert next(iter(scan.coverage.skipped)).startswith("Git LFS pointer")


def test_an_agents_own_log_is_read_where_there_is_no_trajectory(tmp_path: Path) -> None:
    folder = trial(tmp_path / "t__1", entries=None)
    rows = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x"},
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "Sort it."}},
        {
            "type": "assistant",
            "session_id": "s",
            "message": {
                "id": "m1",
                "content": [{"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "ls"}}],
            },
        },
    ]
    dump_lines(folder / "agent" / "claude-code.txt", rows)
    found = one(folder)
    assert (found.form, found.model, len(found.trajectory.turns)) == ("harbor", "claude-x", 1)
    assert found.outcome.passed is False


def test_a_document_of_our_own_export_is_read_with_its_outcome(tmp_path: Path) -> None:
    from arise.report.exports.atif import trajectory_document
    from arise.types import Observation, Rollout, StopReason, ToolCall, Trajectory, Turn

    turn = Turn("look", (ToolCall("bash", {"command": "ls"}, "c1"),), (Observation("x", error=True, call_id="c1"),))
    rollout = Rollout(Trajectory("k0/t/0", "t", (turn,), StopReason.TURN_LIMIT), 1.0, True)
    dump(tmp_path / "a.json", trajectory_document(rollout, "Do it.", "m"))
    found = one(tmp_path)
    assert (found.task.id, found.outcome.passed, found.trajectory.stop) == ("t", True, StopReason.TURN_LIMIT)
    assert found.trajectory.turns[0].observations[0].error
