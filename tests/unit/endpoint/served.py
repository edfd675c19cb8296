"""A running endpoint for tests: scripted turns, counted samples, and a client on its unix socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx

from arise.endpoint.policy import Policy
from arise.endpoint.serving import Endpoint, on_socket
from arise.endpoint.sessions import CallLimits, Session
from arise.types import Capabilities, SamplingParams, Segment
from arise.types.chat import Message
from tests.unit.endpoint.byte_format import ByteFormat
from tests.unit.endpoint.conversations import loose

Script = Callable[[Sequence[int]], Message]


@dataclass
class ScriptedEngine:
    """Answers each prompt as a script says, after `seconds`; keeps what it was asked."""

    format: ByteFormat
    script: Script
    window: int = 100_000
    seconds: float = 0.0
    asked: list[tuple[tuple[int, ...], SamplingParams]] = field(default_factory=list)
    broken: bool = False
    versions: tuple[int, ...] = ()
    """The versions of the first tokens of a turn; later ones have the version after the last of these."""

    def capabilities(self) -> Capabilities:
        return Capabilities(False, False, False, self.window)

    async def sample(self, prompt_ids: Sequence[int], params: SamplingParams, n: int = 1) -> list[Segment]:
        assert n == 1
        self.asked.append((tuple(prompt_ids), params))
        await asyncio.sleep(self.seconds)
        if self.broken:
            raise ConnectionError("the sampler was killed")
        ids = tuple(self.format.answer(self.script(prompt_ids)))
        finish = "stop" if len(ids) <= params.max_tokens else "length"
        ids = ids[: params.max_tokens]
        later = self.versions[-1] + 1 if self.versions else 3
        versions = (*self.versions, *[later] * len(ids))[: len(ids)]
        return [Segment(ids, (-0.5,) * len(ids), versions, "", finish)]


@dataclass
class Served:
    """One session behind a socket, and a client that speaks to it."""

    endpoint: Endpoint
    session: Session
    engine: ScriptedEngine
    client: httpx.AsyncClient

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        """Post with the session's key as bearer unless headers say otherwise."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named = named or {"authorization": f"Bearer {self.session.token}"}
        return await self.client.post(path, content=json.dumps(body), headers=named)

    async def chat(self, messages: list[dict[str, Any]], **more: Any) -> httpx.Response:
        return await self.post("/v1/chat/completions", {"model": "any", "messages": messages, **more})


@asynccontextmanager
async def served(
    script: Script,
    limits: CallLimits | None = None,
    seconds: float = 0.0,
    window: int = 100_000,
    guidance: str = "",
    versions: tuple[int, ...] = (),
) -> AsyncIterator[Served]:
    """Serve a scripted policy on a unix socket."""
    engine = ScriptedEngine(ByteFormat(), script, window, seconds, versions=versions)
    async with on_socket() as endpoint:
        session = Session(Policy(engine, engine.format), limits or CallLimits(), "k0/x/0", 7, guidance)
        transport = httpx.AsyncHTTPTransport(uds=str(endpoint.socket))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://endpoint", timeout=60) as client,
            endpoint.session(session),
        ):
            yield Served(endpoint, session, engine, client)


def saying(*turns: Message) -> Script:
    """Answer with one message after another; the last one again at the end."""
    left = list(turns)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


USER = {"role": "user", "content": "Fix it."}
SYSTEM = {"role": "system", "content": "You work."}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": {"type": "object"}}}
LS = Message("assistant", "I look.", "hm", (loose("ls"),))
DONE = Message("assistant", "done")
Use = Callable[[Served], Awaitable[None]]


def use(work: Use, *turns: Message, **options: Any) -> None:
    async def whole() -> None:
        async with served(saying(*(turns or (DONE,))), **options) as found:
            await work(found)

    asyncio.run(whole())
