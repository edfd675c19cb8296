"""Whether an attempt succeeded: the task's own test.sh, run where the agent never was (paper: R_task of Sec. 3.1).

The agent's processes are dead before it starts, and its files are copied into a fresh sandbox. Only what test.sh and
its own programs write counts as the reward. Whatever the attempt can cause is a reward of 0 with its reason, also a
test.sh that hangs, dies or writes nothing; a fault is the loss of the sandbox itself.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from arise.ports import Sandbox, SandboxLost
from arise.rollouts.reward import JSON, MAX_REWARD_BYTES, TEXT, RewardError, Written, final_reward
from arise.sandbox import BubblewrapPool, BubblewrapSandbox, Limits, TreeRefused
from arise.tasks import TaskDir
from arise.types import CommandResult

TESTS, LOGS, SOLUTION = "/tests", "/logs/verifier", "/solution"
SUCCESS = 1.0
# The working directory is the agent's: nothing in it may be taken for a Python library unless the task says so.
SAFE_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class VerifierResult:
    """R_task of one attempt — `VerifierResult(1.0, True)`; with a `fault`, reward and success are None.

    A `reason` says why an attempt got 0 that test.sh did not give it.
    """

    reward: float | None
    success: bool | None
    fault: str = ""
    stdout: str = ""
    details: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""


def script(path: str, environment: Mapping[str, str]) -> str:
    """The command that runs a task's script with its environment set."""
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"{f'export {exports}; ' if exports else ''}exec bash {path}"


class Verifier:
    """Runs test.sh in sandboxes of its own — `async with Verifier(4) as v: await v.verify(box, task)`."""

    def __init__(
        self,
        size: int = 4,
        limits: Limits | None = None,
        workdir: str = "/app",
        read_only: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
    ) -> None:
        guard = LOGS, TESTS
        self.pool = BubblewrapPool(size, limits, (LOGS,), workdir, (TESTS, SOLUTION), read_only, hidden, guard)
        self.unguarded = ""
        """Why programs that test.sh runs cannot be kept from writing the reward, "" where they can."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What this machine cannot enforce, for the run's record."""
        if not self.unguarded:
            return self.pool.notes
        return (
            *self.pool.notes,
            f"programs that test.sh runs can write the reward themselves: the kernel does not tell who writes "
            f"({self.unguarded}; Linux 5.14 or later is needed)",
        )

    async def verify(self, attempt: Sandbox, task: TaskDir) -> VerifierResult:
        """Ends the attempt's processes, then judges the files it left; closing the attempt is still its owner's."""
        try:
            await attempt.end()
            sandbox = await self.pool.open()
            try:
                await sandbox.fill(TESTS, task.tests)
                return await self._judge(sandbox, attempt, task)
            finally:
                await sandbox.close()
        except SandboxLost as fault:
            return VerifierResult(None, None, f"sandbox: {fault}")

    async def _judge(self, sandbox: BubblewrapSandbox, attempt: Sandbox, task: TaskDir) -> VerifierResult:
        try:
            await sandbox.fill(sandbox.workdir, attempt.files, left_by_agent=True)
        except TreeRefused as error:
            return _zero(f"the files it left cannot be shown to test.sh: {error}")
        environment = SAFE_ENVIRONMENT | dict(task.verifier_env)
        done = await sandbox.run(
            script(f"{TESTS}/test.sh", environment), task.verifier_timeout, alone=True, guarded=not self.unguarded
        )
        said = "".join(f"[not shown to test.sh: {name}]\n" for name in sandbox.left_out) + done.output
        try:
            _require_end(done, sandbox, guarded=not self.unguarded)
            files, notes = _reward_files(sandbox, guarded=not self.unguarded)
            try:
                reward, numbers = final_reward(files, task.reward_range)
            except RewardError as error:
                raise RewardError("; ".join((str(error), *notes))) from error
        except RewardError as error:
            return _zero(str(error), said)
        return VerifierResult(reward, reward >= SUCCESS, "", said, numbers)

    async def __aenter__(self) -> Self:
        await self.pool.__aenter__()
        try:
            self.unguarded = await self._why_unguarded()
        except BaseException:
            await self.pool.close()
            raise
        return self

    async def _why_unguarded(self) -> str:
        """Tries the guard once, so that what is missing is known before the first attempt."""
        if not self.pool.layout.guard_settings:
            return "no system-call filter for this machine"
        sandbox = await self.pool.open()
        try:
            await sandbox.run(f"echo 1 > {LOGS}/reward.txt", 30, guarded=True)
            report = json.loads(sandbox.report or b"{}")
            wrote = [file["data"] for file in report.get("files", ())]
            return "" if wrote == ["1\n"] else report.get("missing") or "its memory cannot be read"
        finally:
            await sandbox.close()

    async def __aexit__(self, *error: object) -> None:
        await self.pool.close()


def _zero(reason: str, said: str = "") -> VerifierResult:
    return VerifierResult(0.0, False, "", said, {}, reason)


def _require_end(done: CommandResult, sandbox: BubblewrapSandbox, guarded: bool) -> None:
    """Refuse the word of a test.sh that did not come to its end."""
    if done.ended in ("timeout", "output") or not sandbox.alive:
        raise RewardError(f"test.sh was ended by its {done.ended} limit")
    if sandbox.signalled:
        because = " for want of memory" if done.ended == "memory" else ""
        raise RewardError(f"test.sh was ended by signal {done.exit_code - 128}{because}")
    if sandbox.left_running and not guarded:  # they could have written after test.sh had its say
        raise RewardError("test.sh left processes running")


def _reward_files(sandbox: BubblewrapSandbox, guarded: bool) -> tuple[list[Written], list[str]]:
    """The reward files of those who may write them, and what others tried."""
    if guarded:
        report = json.loads(sandbox.report or b"{}")
        if report.get("missing", "no report"):
            raise SandboxLost(f"test.sh could not be watched: {report.get('missing', 'no report')}")
        files = [Written(**{**file, "data": file["data"].encode("latin-1")}) for file in report["files"]]
        return files, report["notes"]
    found = [(name, sandbox.read(LOGS, name, MAX_REWARD_BYTES)) for name in (JSON, TEXT)]
    return [Written(name, data, order=at) for at, (name, data) in enumerate(found) if data is not None], []
