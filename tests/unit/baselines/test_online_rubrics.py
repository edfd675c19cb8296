import asyncio
from collections.abc import Sequence

from arise.analyst import OfflineJudge, OfflineReflector
from arise.baselines.online_rubrics import OnlineRubrics
from arise.config.baselines import ElicitedCriteria
from arise.types import Group, Observation, Pool, Rollout, StopReason, Task, ToolCall, Trajectory, Turn, Verdict

TASK = Task("x1", "Process in.csv . Follow spec.txt .", ("data-cleaning-and-normalization",))
HASTY = ("./tool strict comma in.csv",)
CAREFUL = ("cat spec.txt", "head -n 2 in.csv", "./tool strict comma in.csv")


def attempt(commands: Sequence[str], number: int = 0, fault: str = "") -> Rollout:
    turns = [
        Turn(f"$ {command}", (ToolCall("bash", {"command": command}),), (Observation("done"),)) for command in commands
    ]
    last = Turn("$ submit", (ToolCall("bash", {"command": "submit"}),))
    trajectory = Trajectory(f"t{number}", TASK.id, (*turns, last), StopReason.FINISHED)
    return Rollout(trajectory, None if fault else 0.0, None if fault else False, fault=fault)


def assessed(rollouts: Sequence[Rollout], references: Sequence[Rollout]) -> Group:
    async def made(task: Task) -> Sequence[Rollout]:
        return references

    assessor = OnlineRubrics(OfflineJudge(), OfflineReflector(), made, ElicitedCriteria())
    return asyncio.run(assessor.assess(Group(TASK, tuple(rollouts), len(rollouts)), Pool()))


def test_a_difference_to_the_reference_becomes_a_criterion_for_the_whole_group() -> None:
    group = assessed([attempt(HASTY, 0), attempt(CAREFUL, 1)], [attempt(CAREFUL)])
    first, second = (rollout.judgment for rollout in group.rollouts)
    assert first is not None
    assert second is not None
    assert first.verdicts.keys() == second.verdicts.keys() != set()
    assert Verdict.FAIL in first.verdicts.values()
    assert set(second.verdicts.values()) == {Verdict.PASS}
    assert all(note.startswith("criterion c") for note in first.notes)


def test_without_a_difference_there_is_nothing_to_judge_by() -> None:
    group = assessed([attempt(HASTY, 0)], [attempt(HASTY)])
    assert group.rollouts[0].judgment is not None
    assert group.rollouts[0].judgment.verdicts == {}


def test_the_same_criterion_has_the_same_id_in_every_group() -> None:
    one, other = (assessed([attempt(HASTY, n)], [attempt(CAREFUL)]) for n in (0, 5))
    assert one.rollouts[0].judgment is not None
    assert other.rollouts[0].judgment is not None
    assert one.rollouts[0].judgment.verdicts == other.rollouts[0].judgment.verdicts


def test_a_lost_attempt_stays_unjudged_and_in_its_place() -> None:
    lost = attempt((), 1, fault="sandbox: gone")
    group = assessed([attempt(HASTY, 0), lost, attempt(CAREFUL, 2)], [attempt(CAREFUL)])
    assert [rollout.trajectory.id for rollout in group.rollouts] == ["t0", "t1", "t2"]
    assert group.rollouts[1] is lost
    assert group.rollouts[2].judgment is not None
