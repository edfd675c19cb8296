"""The bubblewrap verifier for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from arise.rollouts.verifier import Verifier
from arise.sandbox import BubblewrapVerifierPool, Limits


@asynccontextmanager
async def bubblewrap_verifier(
    size: int, limits: Limits | None = None, read_only: tuple[str, ...] = ()
) -> AsyncIterator[Verifier]:
    async with BubblewrapVerifierPool(size, limits, read_only=read_only) as pool:
        yield Verifier(pool)
