"""The warm start: demonstrations whose sandboxes fail are run again or end with a message; no thread is left."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from arise.compose import policies
from arise.compose.demonstrations import demonstrations
from arise.config import Config, WorldTasks
from arise.errors import AriseError, Exit
from arise.ports import SandboxLost
from arise.rollouts.commands import observe
from arise.sandbox import BubblewrapPool, BubblewrapSandbox
from arise.types import BARE, Place
from arise.world.warm_start import TRIES, Commands, Demonstration, demonstrate, in_commands

PLAY = in_commands(lambda result: observe(result, 1000), 12, 10)


class Failing(BubblewrapPool):
    """Loses a sandbox at every opening but each `works`-th."""

    def __init__(self, works: int) -> None:
        super().__init__(2)
        self.works, self.opened = works, 0

    async def open(self, place: Place = BARE) -> BubblewrapSandbox:
        self.opened += 1
        if self.opened % self.works:
            raise SandboxLost("the kernel is out of sandboxes")
        return await super().open(place)


async def shown(pool: BubblewrapPool) -> list[Demonstration[Commands]]:
    async with pool:
        return await demonstrate(WorldTasks(), 3, pool, PLAY)


def test_a_demonstration_that_lost_its_sandbox_is_run_again_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arise.world.warm_start.AT_ONCE", 1)
    pool = Failing(TRIES)
    assert asyncio.run(shown(pool)) == asyncio.run(shown(BubblewrapPool(2)))
    assert pool.opened == 3 * TRIES


def test_a_sandbox_that_keeps_failing_ends_the_start_with_a_message() -> None:
    config = Config.model_validate({"model": {"demonstrations": 2}})
    with pytest.raises(AriseError, match=f"lost its sandbox {TRIES} times: the kernel is out of sandboxes") as caught:
        asyncio.run(demonstrations(config, Failing(10**6), None))
    assert caught.value.exit_code == Exit.ENGINE


def test_no_thread_of_the_cloning_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its idle OpenMP team would slow every later update."""
    used: list[threading.Thread] = []

    async def nothing(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(policies, "cached_start", lambda _: tmp_path)
    monkeypatch.setattr(policies, "demonstrations", nothing)
    monkeypatch.setattr(policies, "_clone_into", lambda *_: used.append(threading.current_thread()))
    asyncio.run(policies.starting_model(Config(), BubblewrapPool(1)))
    assert [thread.is_alive() for thread in used] == [False]
