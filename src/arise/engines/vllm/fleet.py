"""A fleet of vLLM servers that sample one policy: conversations stay on a server, and a lost server is started again.

All servers hold the current version or take no requests. Requests under way when the weights change end early; their
turns go on under the new version, with a cache of their own, so that every token's log-prob is exact for its version.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import httpx2 as httpx

from arise.engines.faults import EngineFault
from arise.engines.remote.processes import Process
from arise.engines.vllm.server import Generation, Request, Server, ServerDown, WrongWeights, seed_of
from arise.engines.vllm.spec import FleetSpec, SampledTurn
from arise.ports import PolicyLost
from arise.types import SamplingParams

MAX_RESTARTS = 5
"""Restarts of one server without a finished turn in between; after that it is not the server's bad luck."""
REMEMBERED = 100_000
"""Conversations whose server is remembered."""

log = logging.getLogger(__name__)


@dataclass
class _Seat:
    """A place in the fleet: its server now, and the work it has."""

    number: int
    address: str = ""
    process: Process | None = None
    load: int = 0
    restarts: int = 0
    version: int = -1
    """The version of its weights; -1 while it is down."""


class Fleet:
    """Samples turns on a set of servers; `load` moves all of them to the next version."""

    def __init__(self, spec: FleetSpec) -> None:
        self._spec = spec
        self._seats = [_Seat(number) for number in range(spec.count if spec.start else len(spec.addresses))]
        self._homes: OrderedDict[str, int] = OrderedDict()
        self._folder, self.version = "", -1
        self._session: _Session | None = None
        # Servers may outlive a run and serve the next: its versions must not be mistaken for ours.
        self._name = secrets.token_hex(4)
        self.restarts = 0
        self.release = ""

    @property
    def given(self) -> bool:
        """Whether the servers were given by address."""
        return self._spec.start is None

    @property
    def processes(self) -> list[Process]:
        """The server processes that were started here."""
        return [seat.process for seat in self._seats if seat.process is not None]

    async def reach(self) -> None:
        """Raise EngineFault unless every server that was given answers."""
        try:
            for seat, address in zip(self._seats, self._spec.addresses, strict=True):
                seat.address = address
                await self._await_health(seat, self._spec.first_seconds)
        except ServerDown as error:
            raise EngineFault(str(error)) from None

    async def open(self, folder: str, version: int) -> None:
        """Start or reach every server with the weights of `folder`; raises EngineFault if one does not come up."""
        self._folder, self.version = folder, version
        try:
            await asyncio.gather(*(self._come_up(seat) for seat in self._seats))
            self.release = await self._server(self._seats[0]).version()
        except (ServerDown, ValueError) as error:
            self.close()
            raise EngineFault(str(error)) from None

    async def load(self, folder: str, version: int) -> None:
        """Move every server to new weights; returns when no server can use the old ones."""
        session = self._here()
        async with session.changing:
            session.open.clear()
            try:
                self._folder, self.version = folder, version
                await asyncio.gather(*(self._move(seat) for seat in self._seats if seat.version >= 0))
                for seat in self._seats:
                    if seat.version < 0:
                        self._mend(seat)  # it takes the current weights when it is back
            finally:
                session.open.set()

    async def turn(self, prompt: Sequence[int], params: SamplingParams, number: int) -> SampledTurn:
        """Sample one turn to its end, over weight updates and lost servers."""
        ids, logprobs, versions = list[int](), list[float](), list[int]()
        room = min(params.max_tokens, self._spec.window - len(prompt))
        while len(ids) < room:
            await self._here().open.wait()
            version = self.version
            request = Request(
                [*prompt, *ids],
                room - len(ids),
                params.temperature,
                params.top_p,
                seed_of(params, number, len(prompt) + len(ids)),
                self._label(version),
                tuple(self._spec.end_ids),
                params.stop,
                adapter=self._adapter,
            )
            part = await self._ask(request, params.conversation or f"/{number}", version)
            if part is None:
                continue
            ids += part.ids
            logprobs += part.logprobs
            versions += [version] * len(part.ids)
            if part.finish == "stop":
                return SampledTurn(tuple(ids), tuple(logprobs), tuple(versions), "stop")
        finish = "length" if len(ids) >= params.max_tokens else "context"
        return SampledTurn(tuple(ids), tuple(logprobs), tuple(versions), finish)

    async def _ask(self, request: Request, conversation: str, version: int) -> Generation | None:
        """Send one request to its conversation's server; None where it must be asked again."""
        seat = self._seat_of(conversation)
        if seat is None:
            await self._wait_for_any()
            return None
        seat.load += 1
        try:
            found = await self._server(seat).generate(request)
            seat.restarts = 0
            return found
        except WrongWeights as fault:
            if version == self.version:
                log.warning("server %d answered with %s; its weights are loaded again", seat.number, fault)
                seat.version = -1
                self._mend(seat)
            return None
        except ServerDown as fault:
            self._lose(seat, fault)
            return None
        finally:
            seat.load -= 1

    def _seat_of(self, conversation: str) -> _Seat | None:
        """Return the server that holds this conversation's cache if it is up, else the one with the least work."""
        ready = [seat for seat in self._seats if seat.version == self.version]
        if not ready:
            return None
        home = self._homes.get(conversation, -1)
        if home < 0 or self._seats[home].version != self.version:
            home = min(ready, key=lambda seat: (seat.load, seat.number)).number
        self._homes[conversation] = home
        self._homes.move_to_end(conversation)
        while len(self._homes) > REMEMBERED:
            self._homes.popitem(last=False)
        return self._seats[home]

    async def _wait_for_any(self) -> None:
        session = self._here()
        for seat in self._seats:
            if seat.version != self.version:
                self._mend(seat)
        waiting = list(session.mending.values())
        if waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task.exception() is not None and not any(seat.version >= 0 for seat in self._seats):
                    raise PolicyLost(str(task.exception()))

    def _lose(self, seat: _Seat, fault: ServerDown) -> None:
        """Note that a server is down and bring it back."""
        if seat.version >= 0:
            log.warning("server %d is down (%s); its turns move to the others", seat.number, fault)
            seat.version = -1
        self._mend(seat)

    def _mend(self, seat: _Seat) -> None:
        """Bring a server back in the background, once."""
        session = self._here()
        if seat.number not in session.mending:
            task = asyncio.create_task(self._come_up(seat))
            session.mending[seat.number] = task
            task.add_done_callback(lambda _: session.mending.pop(seat.number, None))
            task.add_done_callback(_note_failure)

    async def _come_up(self, seat: _Seat) -> None:
        """Start a server of ours, or wait for one that was given, until it holds the current weights."""
        if self._spec.start is None:
            seat.address = self._spec.addresses[seat.number]
            await self._await_health(seat, self._spec.lost_seconds if self.release else self._spec.first_seconds)
        elif seat.process is None or not seat.process.running or not await self._server(seat).healthy():
            await self._start(seat)
        await self._move(seat)

    async def _start(self, seat: _Seat) -> None:
        assert self._spec.start is not None
        if seat.process is not None:
            seat.restarts += 1
            self.restarts += 1
            if seat.restarts > MAX_RESTARTS:
                raise PolicyLost(f"server {seat.number} died {MAX_RESTARTS} times in a row: see {seat.process.log}")
            await asyncio.to_thread(seat.process.end)
        model = self._spec.base or self._folder
        seat.process, seat.address = await asyncio.to_thread(self._spec.start, seat.number, model)
        await self._await_health(seat, self._spec.start_seconds)

    async def _await_health(self, seat: _Seat, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while not await self._server(seat).healthy():
            if seat.process is not None and not seat.process.running:
                raise ServerDown(
                    f"the vLLM server ended while it started; log: {seat.process.log}\n{seat.process.said()}"
                )
            if asyncio.get_running_loop().time() > end:
                raise ServerDown(f"no vLLM server answers at {seat.address} after {seconds:.0f} s")
            await asyncio.sleep(0.5)

    async def _move(self, seat: _Seat) -> None:
        """Load the current weights; a server that does not manage is down until it is mended."""
        while seat.version != self.version:
            version = self.version
            try:
                await self._load_into(self._server(seat), self._label(version))
            except ServerDown as fault:
                if seat.version < 0:
                    raise
                self._lose(seat, fault)
                return
            seat.version = version

    async def _load_into(self, server: Server, label: str) -> None:
        if self._adapter:
            await server.load_adapter(self._folder, label)
        elif self._spec.base:
            await server.rename(label)  # it holds the base model, which cannot change
        else:
            await server.load(self._folder, label)

    @property
    def _adapter(self) -> bool:
        """Whether the current weights are an adapter of the base model."""
        return bool(self._spec.base) and self._folder != self._spec.base

    def _label(self, version: int) -> str:
        return f"{self._name}-{version}"

    def _server(self, seat: _Seat) -> Server:
        return Server(seat.address, self._here().client, self._spec.key)

    def _here(self) -> "_Session":
        """Return the client and the gate of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            self._session = _Session(loop, self._spec.request_seconds)
        return self._session

    def close(self) -> None:
        """End the servers that were started here."""
        for process in self.processes:
            process.end()


class _Session:
    """What belongs to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self.client = httpx.AsyncClient(timeout=httpx.Timeout(seconds, connect=10.0), limits=limits)
        self.open, self.changing = asyncio.Event(), asyncio.Lock()
        self.open.set()
        self.mending: dict[int, asyncio.Task[None]] = {}


def _note_failure(task: "asyncio.Task[None]") -> None:
    with suppress(asyncio.CancelledError):
        if (error := task.exception()) is not None:
            log.warning("a sampling server did not come back: %s", str(error).partition("\n")[0])
