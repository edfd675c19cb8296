"""Run test.sh in separate bubblewrap sandboxes, under a guard that records which process writes the reward.

Agent sandboxes never contain tests, and no agent process can reach these sandboxes: the agent's files are copied.
"""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Self

from arise.ports import Sandbox, SandboxLost, TreeRefused
from arise.sandbox.bubblewrap import BubblewrapSandbox, with_env
from arise.sandbox.layout import WORKDIR
from arise.sandbox.limits import Limits
from arise.sandbox.pool import BubblewrapPool
from arise.types import CommandResult, RewardFile, VerifierJob, VerifierRun
from arise.types.sandbox import (
    LOGS,
    MAX_REPORT_BYTES,
    MAX_REWARD_BYTES,
    REWARD_JSON,
    REWARD_TEXT,
    TEST_REPORT,
    TESTS,
)

# The working directory is the agent's: Python must not import libraries from it unless the task says so.
SAFE_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class BubblewrapVerifierPool:
    """Verify in fresh sandboxes — `async with BubblewrapVerifierPool(4) as pool: await pool.verify(box, job)`."""

    def __init__(
        self,
        size: int = 4,
        limits: Limits | None = None,
        workdir: str = WORKDIR,
        read_only: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.pool = BubblewrapPool(size, limits, (LOGS,), workdir, (TESTS,), read_only, hidden, (LOGS, TESTS))
        self.unguarded = ""
        """Why programs that test.sh runs cannot be kept from writing the reward, "" where they can."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the limits that this machine does not enforce, for the run record."""
        if not self.unguarded:
            return self.pool.notes
        return (
            *self.pool.notes,
            f"programs that test.sh runs can write the reward themselves: the kernel does not tell who writes "
            f"({self.unguarded}; Linux 5.14 or later is needed)",
        )

    async def verify(self, attempt: Sandbox, job: VerifierJob) -> VerifierRun:
        """Copy the files of a finished attempt into a fresh sandbox and run test.sh there."""
        sandbox = await self.pool.open()
        try:
            await fill_tests(sandbox, job)
            try:
                await _bring(attempt, sandbox)
            except TreeRefused as error:
                return VerifierRun(refused=str(error))
            command = with_env(f"exec bash {TESTS}/test.sh", {**SAFE_ENVIRONMENT, **job.place.env, **job.env})
            done = await sandbox.run_command(command, job.timeout, alone=True, guarded=not self.unguarded)
            return result_of(done, sandbox, guarded=not self.unguarded)
        finally:
            await sandbox.close()

    async def _why_unguarded(self) -> str:
        """Try the guard once before the first attempt; return why it cannot be used, "" if it works."""
        if not self.pool.layout.guard_settings:
            return "no system-call filter for this machine"
        sandbox = await self.pool.open()
        try:
            await sandbox.run_command(f"echo 1 > {LOGS}/{REWARD_TEXT}", 30, guarded=True)
            report = json.loads(sandbox.report or b"{}")
            wrote = [file["data"] for file in report.get("files", ())]
            return "" if wrote == ["1\n"] else report.get("missing") or "its memory cannot be read"
        finally:
            await sandbox.close()

    async def close(self) -> None:
        """Close every sandbox and return when all their processes are dead."""
        await self.pool.close()

    async def __aenter__(self) -> Self:
        await self.pool.__aenter__()
        try:
            self.unguarded = await self._why_unguarded()
        except BaseException:
            await self.pool.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.pool.close()


async def fill_tests(sandbox: BubblewrapSandbox, job: VerifierJob) -> None:
    """Copy the tests of a job, later folders over earlier ones."""
    for folder in job.tests:
        await sandbox.fill(TESTS, folder, over=True)


async def _bring(attempt: Sandbox, sandbox: BubblewrapSandbox) -> None:
    """Copy what an attempt left; the files of a bubblewrap sandbox need no intermediate copy on the host."""
    if isinstance(attempt, BubblewrapSandbox):
        await sandbox.fill(sandbox.workdir, attempt.folder(attempt.workdir), left_by_agent=True)
        return
    with tempfile.TemporaryDirectory(prefix="arise-verify-", ignore_cleanup_errors=True) as folder:
        with contextlib.suppress(FileNotFoundError):
            sandbox.left_out += await attempt.get(attempt.workdir, Path(folder))
        await sandbox.fill(sandbox.workdir, Path(folder), left_by_agent=True)


def result_of(done: CommandResult, sandbox: BubblewrapSandbox, guarded: bool) -> VerifierRun:
    """Return how a run of test.sh ended and the files it left."""
    ended = "signal" if sandbox.signalled else "exit"
    if done.ended in ("timeout", "output") or not sandbox.alive:
        ended = done.ended
    rewards, notes = ((), ()) if ended != "exit" else _watched(sandbox) if guarded else (_found(sandbox), ())
    return VerifierRun(
        done.output,
        ended,
        done.exit_code - 128 if ended == "signal" else 0,
        done.ended == "memory",
        sandbox.left_running and not guarded,
        rewards,
        notes,
        sandbox.left_out,
        sandbox.read(LOGS, TEST_REPORT, MAX_REPORT_BYTES) or b"",
    )


def _watched(sandbox: BubblewrapSandbox) -> tuple[tuple[RewardFile, ...], tuple[str, ...]]:
    """Return the reward files written by permitted processes, and attempts by others."""
    report = json.loads(sandbox.report or b"{}")
    if report.get("missing", "no report"):
        raise SandboxLost(f"test.sh could not be watched: {report.get('missing', 'no report')}")
    files = (RewardFile(**{**file, "data": file["data"].encode("latin-1")}) for file in report["files"])
    return tuple(files), tuple(report["notes"])


def _found(sandbox: BubblewrapSandbox) -> tuple[RewardFile, ...]:
    """Return the reward files without checking who wrote them."""
    found = [(name, sandbox.read(LOGS, name, MAX_REWARD_BYTES)) for name in (REWARD_JSON, REWARD_TEXT)]
    return tuple(RewardFile(name, data, order=at) for at, (name, data) in enumerate(found) if data is not None)
