"""The driver of a trainer and its servers, against a trainer that computes nothing and servers that count."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.unit.engines.vllm.fake import FakeVllm

from arise.engines.faults import EngineFault
from arise.engines.local.small_model import small_tokenizer
from arise.engines.remote.engine import RemoteEngine
from arise.engines.remote.policy import Policy
from arise.engines.remote.trainer import TrainerSpec
from arise.engines.vllm.fleet import Fleet
from arise.engines.vllm.spec import FleetSpec
from arise.types import Example, LossSpec, OptimSpec, Tokens

WORKER = """
import os, time
import numpy as np
from pathlib import Path
from arise.engines.remote.workers.loop import serve

class Backend:
    def facts(self):
        return {"share": 0, "library": "areal", "torch": "2", "parameters": 1}
    def score(self, rows, temperature):
        return [np.full(int(row.generated_U.sum()), -0.5) for row in rows]
    def update(self, rows, spec):
        Path(os.environ["BEGUN"]).write_text("")
        time.sleep(600)
    def export(self, folder):
        os.makedirs(folder)

serve(lambda options: Backend())
"""


@pytest.fixture
def servers() -> Iterator[list[FakeVllm]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeVllm()) for _ in range(2)]


@pytest.fixture
def engine(servers: list[FakeVllm], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteEngine]:
    """An engine that is not open yet; its updates last for ever."""
    monkeypatch.setenv("BEGUN", str(tmp_path / "begun"))
    (tmp_path / "worker.py").write_text(WORKER)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "worker.py"} "$@"\n')
    path.chmod(0o755)
    policy = Policy("start", small_tokenizer(["count the words " * 20], 320), 64, 320, frozenset([1]))
    fleet = Fleet(FleetSpec(None, 0, [server.address for server in servers], policy.end_ids, policy.window))
    trainer = TrainerSpec("areal", path, "start", device="cuda", start_seconds=60.0)
    made = RemoteEngine(policy, trainer, fleet, tmp_path / "work")
    yield made
    made.close()


def test_a_server_that_samples_other_weights_is_named_wherever_it_stands(
    engine: RemoteEngine, servers: list[FakeVllm]
) -> None:
    async def run() -> None:
        await engine.open()
        servers[1].broken.append("-3.0")
        with pytest.raises(
            EngineFault, match=f"{servers[1].address} does not sample the weights of version 1: off by 2.5"
        ):
            await engine.publish()

    asyncio.run(run())


def test_an_engine_that_is_closed_in_the_middle_of_an_update_starts_no_trainer_again(
    engine: RemoteEngine, tmp_path: Path
) -> None:
    row = Tokens(np.array([5, 6]), np.array([False, True]), np.zeros(2), np.array([-1, 0]))

    async def run() -> None:
        await engine.open()
        update = asyncio.create_task(engine.train_step([Example((row,), 1.0)], LossSpec(), OptimSpec()))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.02)
        engine.close()
        with pytest.raises(EngineFault, match="the engine was closed"):
            await update

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    asyncio.run(run())
    assert not {child.pid for child in psutil.Process().children(recursive=True)} - before
