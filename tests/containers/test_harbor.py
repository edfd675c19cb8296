"""Harbor in a separate process: trials, sandboxes in its environments, cancelling, and what is left of them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.harbor import install
from arise.harbor.client import HarborWorker
from arise.harbor.pool import HarborPool
from arise.harbor.trials import HarborEnvironment, TrialOutcome, outcome, trial_config
from arise.ports import SandboxLost
from arise.rollouts.oracle import TrialPools, run_null, run_oracle
from arise.rollouts.verifier import Verifier, VerifierResult
from arise.sandbox.owner import new_name, owner_mark
from arise.sandbox.programs import Program
from arise.tasks import read_task
from arise.testing import FakeLLM, always
from arise.testing.fake_llm import in_thread
from arise.types import TaskSpec
from tests.containers.tasks import write
from tests.stored_runs import write_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PODMAN = HarborEnvironment("podman")


@pytest.fixture(scope="module", autouse=True)
def _harbor() -> None:
    if not install.status().usable and install.find_python() is None:
        pytest.skip("Harbor needs Python 3.12 or later: install one, then run `arise harbor install`")
    assert install.install(print).usable


def containers(mark: str) -> list[str]:
    line = ["podman", "ps", "--all", "--format", "{{.Names}}"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=Program("podman").settings())
    return [name for name in done.stdout.split() if mark in name]


@asynccontextmanager
async def started() -> AsyncIterator[HarborWorker]:
    async with HarborWorker() as worker:
        yield worker
    assert containers(owner_mark()) == []


async def trial(worker: HarborWorker, task: Path, agent: str) -> TrialOutcome:
    config = trial_config(task, new_name(), worker.scratch, PODMAN) | {"agent": {"name": agent}}
    return outcome((await worker.call("trial", config=config))["result"])


def test_trials_of_the_solution_earn_one_and_of_nothing_zero(tmp_path: Path) -> None:
    names = ("env", "user", "json-reward", "separate-verifier", "steps")

    async def body() -> dict[tuple[str, str], TrialOutcome]:
        slots = asyncio.Semaphore(3)

        async with started() as worker:

            async def one(name: str, agent: str) -> TrialOutcome:
                async with slots:
                    return await trial(worker, write(name, tmp_path), agent)

            pairs = [(name, agent) for name in names for agent in ("oracle", "nop")]
            return dict(zip(pairs, await asyncio.gather(*(one(*pair) for pair in pairs)), strict=True))

    found = asyncio.run(body())
    assert found == {pair: TrialOutcome(1.0 if pair[1] == "oracle" else 0.0) for pair in found}


def test_agents_of_arise_work_in_an_environment_of_harbor(tmp_path: Path) -> None:
    task = read_task(write("env", tmp_path))
    assert isinstance(task, TaskSpec)

    async def body() -> tuple[VerifierResult, VerifierResult, list[str]]:
        async with started() as worker:
            pool = HarborPool(PODMAN, worker)
            pools = TrialPools(pool, Verifier(pool))
            box = await pool.open(task.place)
            said = [(await box.run("echo $SHAPE; echo err >&2; exit 3", 20)).output]
            slow = await box.run("sleep 60", 1)
            said += [slow.ended, box.workdir]
            with pytest.raises(FileNotFoundError):
                await box.get("/absent", tmp_path / "absent")
            await box.run("mkdir -p /out && echo 5 > /out/x", 20)
            await box.get("/out", tmp_path / "out")
            await box.close()
            return await run_oracle(task, pools), await run_null(task, pools), said

    oracle, null, said = asyncio.run(body())
    assert (oracle.reward, oracle.fault, null.reward) == (1.0, "", 0.0)
    assert said[0].split() == ["round", "err"]
    assert said[1:] == ["timeout", "/app"]
    assert (tmp_path / "out" / "x").read_text() == "5\n"


def test_a_cancelled_trial_and_one_that_cannot_start_leave_nothing(tmp_path: Path) -> None:
    task = write("env", tmp_path)
    (task / "solution" / "solve.sh").write_text("sleep 1000\n")

    async def body() -> None:
        async with started() as worker:
            running = asyncio.create_task(trial(worker, task, "oracle"))
            while not containers(owner_mark()):
                await asyncio.sleep(0.2)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            config = trial_config(task, new_name(), worker.scratch, HarborEnvironment("no-such-environment"))
            with pytest.raises(SandboxLost, match="no-such-environment"):
                await worker.call("trial", config=config)

    asyncio.run(body())


KILLED = """
import asyncio, sys
from pathlib import Path
from arise.harbor.pool import HarborPool
from arise.harbor.trials import HarborEnvironment
from arise.types import Place

async def main():
    async with HarborPool(HarborEnvironment("podman")) as pool:
        box = await pool.open(Place(directory=Path(sys.argv[1])))
        print("ready", flush=True)
        await box.run("sleep 1000", 1000)

asyncio.run(main())
"""


def test_a_killed_run_takes_its_environments_with_it(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(write("env", tmp_path))], stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    mark = f"arise-{process.pid}-"
    assert containers(mark)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    async def gone() -> None:
        async with asyncio.timeout(120):
            while containers(mark):
                await asyncio.sleep(0.5)

    asyncio.run(gone())


def test_what_a_trial_means() -> None:
    raised = {"exception_type": "AgentTimeoutError", "exception_message": "900 s"}
    assert outcome({"verifier_result": {"rewards": {"reward": 1}}, "exception_info": raised}) == TrialOutcome(1.0)
    assert outcome({"exception_info": raised}) == TrialOutcome(0.0, reason="AgentTimeoutError: 900 s")
    lost = outcome({"exception_info": {"exception_type": "DaytonaError", "exception_message": "quota"}})
    assert (lost.reward, lost.fault) == (None, "DaytonaError: quota")
    assert HarborEnvironment("my.module:Env", {"kwargs": {"a": 1}}).fields() == {
        "kwargs": {"a": 1},
        "import_path": "my.module:Env",
    }


def test_terminus_2_solves_a_task_behind_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through `arise eval --suite --agent terminus-2`, with a scripted model; called again it has nothing left."""
    task = write("env", tmp_path / "suite")
    with (task / "environment" / "Dockerfile").open("a") as file:
        file.write("RUN apt-get update && apt-get install -y --no-install-recommends tmux\n")
    write_run(tmp_path / "run", 2)
    reply = {
        "analysis": "The variables are set.",
        "plan": "Write them.",
        "commands": [{"keystrokes": 'echo "$COLOUR $SHAPE" > a\n', "duration": 1.0}],
        "task_complete": True,
    }
    monkeypatch.setenv("FAKE_KEY", "k")
    with in_thread(FakeLLM(always(json.dumps(reply)))) as fake:
        model = ["--model", "m", "--base-url", fake.base_url, "--api-key-env", "FAKE_KEY"]
        words = ["eval", str(tmp_path / "run"), *model]
        words += ["--suite", str(tmp_path / "suite"), "--agent", "terminus-2", "--environment", "podman"]
        done = CliRunner().invoke(app, [*words, "--attempts", "1", "--label", "t"])
        asked = len(fake.asks)
        again = CliRunner().invoke(app, [*words, "--attempts", "1", "--label", "t"])
    assert "100.0 % of 1 attempts" in done.stdout, (done.output, done.exception)
    assert "infrastructure faults: 0" in done.stdout
    assert asked >= 2
    assert (again.stdout, len(fake.asks)) == (done.stdout, asked)
    trial = tmp_path / "run" / "jobs" / "t" / "env__0000000"
    result = json.loads((trial / "result.json").read_text())
    assert result["agent_info"]["name"] == "terminus-2"
    assert (trial / "agent" / "trajectory.json").is_file()
    assert (trial / "verifier" / "reward.txt").read_text().strip() == "1"
