"""Verify an attempt with the task's test.sh in a sandbox without the agent (paper: R_task of Sec. 3.1).

The agent's processes have ended before it starts. Failures that an attempt can cause, including a test.sh that hangs,
crashes or writes nothing, are a reward of 0 with a reason; only the loss of the sandbox is a fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arise.ports import Sandbox, SandboxLost, VerifierPool
from arise.rollouts.ctrf import read_report
from arise.rollouts.reward import RewardError, final_reward
from arise.types import TaskSpec, VerifierRun

SUCCESS = 1.0
COLLECT_SECONDS = 60.0
ONLY_REPORT = "ctrf.json alone is no reward, because the program that writes it runs files of the attempt"


@dataclass(frozen=True)
class VerifierResult:
    """R_task of one attempt — `VerifierResult(1.0, True)`; with a `fault`, reward and success are None.

    `reason` explains a reward of 0 that was not written by test.sh.
    """

    reward: float | None
    success: bool | None
    fault: str = ""
    stdout: str = ""
    details: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Verifier:
    """Run test.sh and read its reward — `await Verifier(pool).verify(sandbox, task)`."""

    pool: VerifierPool

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the limits that this machine does not enforce, for the record of the run."""
        return self.pool.notes

    async def verify(self, attempt: Sandbox, task: TaskSpec, last: bool = True) -> VerifierResult:
        """End the attempt's processes and verify its files; the caller closes the sandbox of the attempt.

        Unless this is the `last` stage of a task, the sandbox stays usable for the next stage.
        """
        try:
            await _collect(attempt, task)
            if last:
                await attempt.end()
            run = await self.pool.verify(attempt, task.verifier_job)
        except SandboxLost as fault:
            return VerifierResult(None, None, f"sandbox: {fault}")
        if run.refused:
            return _zero(f"the files it left cannot be shown to test.sh: {run.refused}")
        said = "".join(f"[not shown to test.sh: {name}]\n" for name in run.left_out) + run.output
        tests = read_report(run.tests)
        if tests is not None:
            said = f"{said.rstrip()}\n{tests.line()}\n"
        try:
            _require_end(run)
            reward, numbers = final_reward(run.rewards, task.verifier.reward_range)
        except RewardError as error:
            only = () if run.rewards or tests is None else (ONLY_REPORT,)
            return _zero("; ".join((str(error), *only, *run.notes)), said)
        return VerifierResult(reward, reward >= SUCCESS, "", said, {**(tests.numbers() if tests else {}), **numbers})


async def _collect(attempt: Sandbox, task: TaskSpec) -> None:
    """Run the `collect` commands that copy files of the attempt to where the tests expect them."""
    for asked in task.verifier.collect:
        seconds = asked.get("timeout_sec", COLLECT_SECONDS)
        user = asked.get("user")
        await attempt.run(
            str(asked.get("command", "")),
            float(seconds) if isinstance(seconds, int | float) else COLLECT_SECONDS,
            user=str(user) if user is not None else None,
        )


def _zero(reason: str, said: str = "") -> VerifierResult:
    return VerifierResult(0.0, False, "", said, {}, reason)


def _require_end(run: VerifierRun) -> None:
    """Raise RewardError if test.sh did not exit normally."""
    if run.ended == "signal":
        because = " because it ran out of memory" if run.out_of_memory else ""
        raise RewardError(f"test.sh was ended by signal {run.signal}{because}")
    if run.ended != "exit":
        raise RewardError(f"test.sh was ended by its {run.ended} limit")
    if run.left_running:
        raise RewardError("test.sh left processes running")
