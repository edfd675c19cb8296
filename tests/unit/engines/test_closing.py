"""An engine that is closed while it samples leaves no error behind."""

import asyncio
import gc
import threading
from typing import Any

from tests.conformance.conftest import tiny_model

from arise.engines.local import LocalEngine
from arise.types import SamplingParams


def test_closing_while_turns_are_sampled_leaves_no_unretrieved_error() -> None:
    found: list[dict[str, Any]] = []

    async def interrupted() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
        loaded = tiny_model()
        engine = LocalEngine(loaded.model, loaded.tokenizer)
        turn = asyncio.create_task(engine.sample(range(8, 20), SamplingParams(480), 256))  # many bursts of work
        await asyncio.sleep(0.05)
        assert not turn.done()
        engine.close()
        while any(thread.name.startswith("arise-engine") for thread in threading.enumerate()):
            await asyncio.sleep(0.05)  # until what was being sampled then has come back
        turn.cancel()
        await asyncio.wait([turn])

    asyncio.run(interrupted())
    gc.collect()
    assert found == []
