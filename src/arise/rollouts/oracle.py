"""Check that a task is sound: its solution must pass its verifier, and doing nothing must not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from arise.ports import Sandbox, SandboxLost, SandboxPool, TreeRefused
from arise.rollouts.stages import run_stages, stages
from arise.rollouts.verifier import Verifier, VerifierResult
from arise.sandbox import SandboxUnavailable
from arise.sandbox.images import BuildFailed
from arise.tasks import TaskProblem
from arise.types import CommandResult, TaskSpec
from arise.types.sandbox import SOLUTION


@dataclass(frozen=True)
class TrialPools:
    """The sandboxes and the verifier for checking tasks."""

    sandboxes: SandboxPool
    verifier: Verifier

    async def open(self, task: TaskSpec) -> Sandbox:
        """Open a fresh sandbox for the task, with a folder for its solution."""
        return await self.sandboxes.open(replace(task.place, folders=(SOLUTION,)))


async def run_null(task: TaskSpec, pools: TrialPools) -> VerifierResult:
    """Verify an attempt that does nothing."""

    async def nothing(_: TaskSpec) -> str:
        return ""

    sandbox = await pools.open(task)
    try:
        return await run_stages(task, sandbox, pools.verifier, nothing)
    finally:
        await sandbox.close()


async def solve(task: TaskSpec, sandbox: Sandbox) -> CommandResult:
    """Run the task's own solution."""
    assert task.solution is not None, f"{task.directory} has no solution"
    await sandbox.put(task.solution.folder, SOLUTION)
    return await sandbox.run(f"exec bash {SOLUTION}/solve.sh", task.solution.timeout, task.solution.env)


async def run_oracle(task: TaskSpec, pools: TrialPools) -> VerifierResult:
    """Verify the task's own solution."""
    sandbox = await pools.open(task)

    async def answer(stage: TaskSpec) -> str:
        done = await solve(stage, sandbox)
        return "" if done.ended == "exit" else f"solve.sh was ended by its {done.ended} limit: {done.output[-300:]}"

    try:
        return await run_stages(task, sandbox, pools.verifier, answer)
    finally:
        await sandbox.close()


@dataclass(frozen=True)
class Trials:
    """The trials of a check — `Trials(repeat=3)`; each is repeated to find flaky verifiers."""

    oracle: bool = True
    null: bool = True
    cheat: bool = False
    repeat: int = 1


async def check_task(task: TaskSpec, pools: TrialPools, trials: Trials = Trials()) -> tuple[TaskProblem, ...]:
    """Run the oracle and the null agent; report a problem unless they always earn 1 and 0."""
    for stage in stages(task):
        if stage.solution is None and trials.oracle:
            path = stage.verifier.tests.parent / "solution" / "solve.sh"
            return (TaskProblem(path, "is missing", "add a solution that passes"),)
    wanted = (("solution", run_oracle, 1.0, trials.oracle), ("null agent", run_null, 0.0, trials.null))
    problems: list[TaskProblem] = []
    try:
        for name, run, reward, asked in wanted:
            if asked:
                results = [await run(task, pools) for _ in range(trials.repeat)]
                problems += _judged(task, name, results, reward)
    except SandboxUnavailable:
        raise  # no task can be checked on this machine
    except BuildFailed as fault:
        return (TaskProblem(fault.dockerfile, f"cannot be built: {fault.said}", "correct what the engine names"),)
    except (SandboxLost, TreeRefused) as fault:
        return (TaskProblem(task.directory, f"could not be checked: {fault}", "fix the sandbox and try again"),)
    return tuple(problems)


def _judged(task: TaskSpec, name: str, results: Sequence[VerifierResult], wanted: float) -> list[TaskProblem]:
    path = stages(task)[0].verifier.script
    wrong = [result for result in results if result.reward != wanted or result.reason]
    if not wrong:
        return []
    if len(wrong) < len(results):
        what = f"inconsistent: it gives the {name} {wanted:g} in {len(results) - len(wrong)} of {len(results)} runs"
        return [TaskProblem(path, what, "remove what depends on chance or time")]
    missing = wrong[0].reason or wrong[0].fault
    got = f"no reward ({missing})" if missing else f"reward {wrong[0].reward:g}"
    said = f"; it said: {wrong[0].stdout.strip()[-300:]!r}" if wrong[0].stdout.strip() else ""
    return [TaskProblem(path, f"gives the {name} {got}{said}", f"the {name} must get {wanted:g}")]
