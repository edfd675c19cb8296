"""Steps with a healthcheck: one that the agent breaks costs the agent, one that never works is a fault."""

import asyncio
from pathlib import Path

from arise.rollouts.stages import run_stages
from arise.rollouts.verifier import Verifier, VerifierResult
from arise.sandbox.health import NotReady
from arise.tasks import read_task
from arise.types import TaskSpec
from tests.containers.conftest import pool_of
from tests.containers.tasks import write

CHECK = 'healthcheck = {{ command = "{}", interval_sec = 0.05, retries = 2 }}\n'


def earned(folder: Path, step: str, commands: dict[str, str], check: str = "test -e /app/one") -> VerifierResult | str:
    """Return what an agent earns that runs one command per step, or why none began; `step` has the healthcheck."""
    file = write("steps", folder) / "task.toml"
    file.write_text(file.read_text().replace(f'name = "{step}"\n', f'name = "{step}"\n{CHECK.format(check)}'))
    task = read_task(file.parent)
    assert isinstance(task, TaskSpec), task
    names = iter(step.name for step in task.steps)

    async def body() -> VerifierResult | str:
        async with pool_of("overlay") as pool:
            box = await pool.open(task.place)

            async def act(_: TaskSpec) -> str:
                await box.run(commands[next(names)], 10)
                return ""

            try:
                return await run_stages(task, box, Verifier(pool), act)
            except NotReady as error:
                return str(error)
            finally:
                await box.close()

    return asyncio.run(body())


def test_a_healthcheck_that_passes(tmp_path: Path) -> None:
    result = earned(tmp_path, "second", {"first": "touch one", "second": "touch two"})
    assert isinstance(result, VerifierResult)
    assert (result.reward, result.fault) == (1.0, "")


def test_a_step_that_the_agent_broke_before_it_began_earns_nothing(tmp_path: Path) -> None:
    result = earned(tmp_path, "second", {"first": "touch one; mkdir given"}, "test ! -d /app/given")
    assert isinstance(result, VerifierResult)
    assert (result.reward, result.fault) == (0.5, "")
    assert result.reason.startswith(
        "step second could not begin: the healthcheck 'test ! -d /app/given' failed 2 times"
    )


def test_a_healthcheck_that_never_passes_is_a_fault(tmp_path: Path) -> None:
    said = earned(tmp_path, "first", {})
    assert said == "the healthcheck 'test -e /app/one' failed 2 times: "
