"""Whether a task is sound: its own solution must pass its verifier, and doing nothing must not."""

from arise.ports import SandboxLost
from arise.rollouts.verifier import SOLUTION, Verifier, VerifierResult, script
from arise.sandbox import BubblewrapSandbox
from arise.tasks import BUILD_FILES, TaskDir, TaskProblem
from arise.types import CommandResult


async def run_null(task: TaskDir, verifier: Verifier) -> VerifierResult:
    """What an agent that does nothing earns."""
    sandbox = await verifier.pool.open(task.environment, BUILD_FILES)
    try:
        return await verifier.verify(sandbox, task)
    finally:
        await sandbox.close()


async def solve(task: TaskDir, sandbox: BubblewrapSandbox) -> CommandResult:
    """Runs the task's own solution."""
    assert task.solution is not None, f"{task.directory} has no solution"
    await sandbox.fill(SOLUTION, task.solution)
    return await sandbox.run(script(f"{SOLUTION}/solve.sh", task.solution_env), task.solution_timeout)


async def run_oracle(task: TaskDir, verifier: Verifier) -> VerifierResult:
    """What the task's own solution earns."""
    sandbox = await verifier.pool.open(task.environment, BUILD_FILES)
    try:
        done = await solve(task, sandbox)
        if done.ended != "exit":
            return VerifierResult(None, None, f"solve.sh was ended by its {done.ended} limit", done.output)
        return await verifier.verify(sandbox, task)
    finally:
        await sandbox.close()


async def check_task(task: TaskDir, verifier: Verifier) -> tuple[TaskProblem, ...]:
    """Runs the oracle and the null agent; no problem means the first earned 1 and the second 0."""
    if task.solution is None:
        return (TaskProblem(task.directory / "solution" / "solve.sh", "is missing", "add a solution that passes"),)
    try:
        oracle, null = await run_oracle(task, verifier), await run_null(task, verifier)
    except SandboxLost as fault:
        return (TaskProblem(task.directory, f"could not be checked: {fault}", "mend the sandbox and try again"),)
    problems = []
    for name, result, wanted in (("solution", oracle, 1.0), ("null agent", null, 0.0)):
        if result.reward != wanted or result.reason:
            missing = result.reason or result.fault
            got = f"no reward ({missing})" if missing else f"reward {result.reward:g}"
            said = f"; it said: {result.stdout.strip()[-300:]!r}" if result.stdout.strip() else ""
            problems.append(
                TaskProblem(task.tests / "test.sh", f"gives the {name} {got}{said}", f"the {name} must get {wanted:g}")
            )
    return tuple(problems)
