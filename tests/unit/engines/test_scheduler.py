"""The scheduler stops without a trace of its own when a run is interrupted in the middle of sampling."""

import asyncio
import gc
import time
from typing import Any, cast

from arise.engines.local.decoding import Row
from arise.engines.local.generation import Generator
from arise.engines.local.scheduler import Scheduler


class Endless:
    """A generator whose rows never finish."""

    busy = True

    def submit(self, row: Row) -> None:
        pass

    def run_burst(self) -> list[Row]:
        time.sleep(0.01)
        return []


class WaitingRow:
    finish = None
    cancelled = False


def test_closing_while_a_row_is_sampled_raises_nothing() -> None:
    raised: list[dict[str, Any]] = []

    async def body() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        scheduler = Scheduler(1)
        turn = asyncio.create_task(scheduler.turn(cast(Generator, Endless()), cast(Row, WaitingRow())))
        await asyncio.sleep(0.05)
        scheduler.close()
        await asyncio.sleep(0.05)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)

    asyncio.run(body())
    gc.collect()  # a task that failed unseen reports it when it is deleted
    assert not raised
