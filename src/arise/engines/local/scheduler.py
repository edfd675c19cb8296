"""Asyncio front end: many coroutines await their turns while one thread owns the model.

All torch work runs on that thread, so sampling, training and saving never interleave within an operation.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from arise.engines.local.decoding import Row
from arise.engines.local.generation import Generator
from arise.types import Segment

Result = TypeVar("Result")


class Scheduler:
    """Runs the generator in bursts while turns are pending, and other work between bursts."""

    def __init__(self, threads: int) -> None:
        # torch stores the number of threads per calling thread: set it on the compute thread.
        self._thread = ThreadPoolExecutor(1, "arise-engine", initializer=torch.set_num_threads, initargs=(threads,))
        self._futures: dict[Row, asyncio.Future[Segment]] = {}
        self._pump: asyncio.Task[None] | None = None

    def run_now(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the engine's thread and block; only before sampling starts."""
        return self._thread.submit(work).result()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run `work` on the engine's thread after the current burst."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def turn(self, generator: Generator, row: Row) -> Segment:
        """Sample one row to its end; a cancelled caller's row leaves the batch."""
        future: asyncio.Future[Segment] = asyncio.get_running_loop().create_future()
        self._futures[row] = future
        generator.submit(row)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run_bursts(generator))
        try:
            return await future
        finally:
            row.cancelled = not row.finish
            self._futures.pop(row, None)

    async def _run_bursts(self, generator: Generator) -> None:
        while generator.busy:
            try:
                finished = await self.run(generator.run_burst)
            except Exception as error:
                await self.run(generator.abandon)
                for future in list(self._futures.values()):
                    if not future.done():
                        future.set_exception(error)
                return
            for row in finished:
                if (waiting := self._futures.get(row)) and not waiting.done():
                    waiting.set_result(row.segment(generator.rules))

    def close(self) -> None:
        """Stop sampling and the thread; turns that are still pending never finish."""
        if self._pump:
            self._pump.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)
