"""Whether an attempt succeeded: the task's own test.sh, run where the agent never was (paper: R_task of Sec. 3.1).

The agent's processes are dead before it starts, its files are copied into a fresh sandbox, and /tests and
/logs/verifier exist only there. A verifier that gives no valid reward gives none: a fault with its reason, never a 0.
"""

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from arise.ports import Sandbox, SandboxLost
from arise.sandbox.bubblewrap import BubblewrapSandbox
from arise.sandbox.limits import Limits
from arise.sandbox.pool import BubblewrapPool

TESTS, LOGS, SOLUTION = "/tests", "/logs/verifier", "/solution"
MAX_REWARD_BYTES = 64 * 1024
SUCCESS = 1.0
SIGNALLED = range(129, 160)
# The working directory is the agent's: nothing in it may be taken for a Python library unless the task says so.
SAFE_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class VerifierResult:
    """R_task of one attempt — `VerifierResult(1.0, True)`; with a `fault`, reward and success are None."""

    reward: float | None
    success: bool | None
    fault: str = ""
    stdout: str = ""
    details: Mapping[str, float] = field(default_factory=dict)


class RewardError(ValueError):
    """The reward files hold no valid reward."""


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RewardError(f"{name} is not a finite number: {value!r}")
    return float(value)


def parse_json_reward(text: bytes) -> dict[str, float]:
    """reward.json: a flat object of finite numbers."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RewardError(f"reward.json is not JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise RewardError("reward.json is not an object with at least one number")
    return {name: _finite(f"reward.json: {name}", value) for name, value in found.items()}


def parse_text_reward(text: bytes) -> dict[str, float]:
    """reward.txt: one finite number."""
    words = text.decode("utf-8", "replace").split()
    if not words:
        raise RewardError("reward.txt is empty")
    try:
        value = float(words[0]) if len(words) == 1 else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RewardError(f"reward.txt is not one finite number: {' '.join(words)[:80]!r}")
    return {"reward": value}


def choose_reward(numbers: Mapping[str, float]) -> float:
    """The number called `reward`, or the only one."""
    if "reward" in numbers:
        return numbers["reward"]
    if len(numbers) > 1:
        raise RewardError(f"reward.json has several numbers and none is called reward: {', '.join(sorted(numbers))}")
    return next(iter(numbers.values()))


def read_reward(sandbox: BubblewrapSandbox) -> dict[str, float]:
    """The numbers that test.sh wrote; reward.json takes precedence."""
    for name, parse in (("reward.json", parse_json_reward), ("reward.txt", parse_text_reward)):
        text = sandbox.read(LOGS, name, MAX_REWARD_BYTES)
        if text is not None:
            return parse(text)
    raise RewardError(f"test.sh wrote neither reward.json nor reward.txt (at most {MAX_REWARD_BYTES} bytes) in {LOGS}")


def script(path: str, environment: Mapping[str, str]) -> str:
    """The command that runs a task's script with its environment set."""
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"{f'export {exports}; ' if exports else ''}exec bash {path}"


class Verifier:
    """Runs test.sh in sandboxes of its own — `async with Verifier(4) as v: await v.verify(box, task.tests, 60)`."""

    def __init__(
        self, size: int = 4, limits: Limits | None = None, workdir: str = "/app", read_only: tuple[str, ...] = ()
    ) -> None:
        self.pool = BubblewrapPool(size, limits, (LOGS,), workdir, (TESTS, SOLUTION), read_only)

    async def verify(
        self, attempt: Sandbox, tests: Path, timeout: float, environment: Mapping[str, str] | None = None
    ) -> VerifierResult:
        """Ends the attempt's processes, then judges the files it left; closing the attempt is still its owner's."""
        try:
            await attempt.end()
            sandbox = await self.pool.open(attempt.files)
            try:
                await sandbox.fill(TESTS, tests)
                return await self._run(sandbox, timeout, SAFE_ENVIRONMENT | dict(environment or {}))
            finally:
                await sandbox.close()
        except SandboxLost as fault:
            return VerifierResult(None, None, f"sandbox: {fault}")

    async def _run(self, sandbox: BubblewrapSandbox, timeout: float, environment: Mapping[str, str]) -> VerifierResult:
        done = await sandbox.run(script(f"{TESTS}/test.sh", environment), timeout, alone=True)
        said = "".join(f"[not shown to test.sh: {name}]\n" for name in sandbox.left_out) + done.output
        if done.ended in ("timeout", "output"):
            return VerifierResult(None, None, f"test.sh was ended by its {done.ended} limit", said)
        if done.exit_code in SIGNALLED:  # what it had written by then may be anybody's
            return VerifierResult(None, None, f"test.sh was ended by signal {done.exit_code - 128}", said)
        if sandbox.left_running:  # and could still have written after test.sh had its say
            return VerifierResult(None, None, "test.sh left processes running", said)
        try:
            numbers = read_reward(sandbox)
            reward = choose_reward(numbers)
        except RewardError as fault:
            return VerifierResult(None, None, str(fault), said)
        return VerifierResult(reward, reward >= SUCCESS, "", said, numbers)

    async def __aenter__(self) -> Self:
        await self.pool.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.pool.close()
