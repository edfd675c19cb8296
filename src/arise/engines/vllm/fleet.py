"""A fleet of vLLM servers that sample one policy: conversations stay on a server, and a lost server is started again.

All servers hold the current version or take no requests. Requests in progress when the weights change end early;
their turns continue under the new version with a separate cache, so every token's log-prob is exact for its version.
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from arise.engines.faults import EngineFault
from arise.engines.remote.processes import Process
from arise.engines.vllm.server import Generation, Request, Server, ServerDown, WrongWeights, seed_of
from arise.engines.vllm.session import Session, Slot, note_failure, while_healthy
from arise.engines.vllm.spec import FleetSpec, SampledTurn
from arise.ports import PolicyLost
from arise.types import SamplingParams

MAX_RESTARTS = 5
"""Most restarts of one server without a finished turn in between; one more ends the run."""
RETRY_SECONDS = 1.0
"""Time between two attempts to restore a server."""
REMEMBERED = 100_000
"""Conversations whose server is remembered."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Fleet:
    """Samples turns on a set of servers; `load` moves all of them to the next version."""

    def __init__(self, spec: FleetSpec) -> None:
        self._spec = spec
        self._slots = [Slot(number) for number in range(spec.count if spec.start else len(spec.addresses))]
        self._homes: OrderedDict[str, int] = OrderedDict()
        self._first, self._folder, self.version = "", "", -1
        self._session: Session | None = None
        # Servers may outlive a run: the versions of the next run must not be mistaken for ours.
        self._name = secrets.token_hex(4)
        self.restarts = 0
        self.release = ""
        self._closed = False

    @property
    def given(self) -> bool:
        """Whether the servers were given by address."""
        return self._spec.start is None

    @property
    def processes(self) -> list[Process]:
        """The server processes that were started here."""
        return [slot.process for slot in self._slots if slot.process is not None]

    async def reach(self) -> None:
        """Raise EngineFault unless every server that was given answers and is of the right release."""
        try:
            for slot, address in zip(self._slots, self._spec.addresses, strict=True):
                slot.address = address
                await self._await_health(slot, self._spec.first_seconds)
                found = await self._server(slot).version()
                if self._spec.release and found.partition("+")[0] != self._spec.release:
                    raise ServerDown(
                        f"{address} runs vLLM {found or 'of no release'}, ARISE works with {self._spec.release}"
                    )
        except (ServerDown, ValueError) as error:
            raise EngineFault(str(error)) from None

    async def open(self, folder: str, version: int) -> None:
        """Start or reach every server with the weights of `folder`; raises EngineFault if one does not come up.

        A server that is started again later begins with this folder too, so it must stay.
        """
        self._first, self._folder, self.version = folder, folder, version
        try:
            await asyncio.gather(*(self._bring_up(slot) for slot in self._slots))
            self.release = await self._server(self._slots[0]).version()
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
                await asyncio.gather(*(self._update(slot) for slot in self._slots if slot.version >= 0))
                for slot in self._slots:
                    if slot.version < 0:
                        self._restore(slot)  # it loads the current weights when it is back
            finally:
                session.open.set()

    async def turn(self, prompt: Sequence[int], params: SamplingParams, number: int) -> SampledTurn:
        """Sample one turn to its end, across weight updates and lost servers."""
        ids, logprobs, versions = list[int](), list[float](), list[int]()
        room = min(params.max_tokens, self._spec.window - len(prompt))
        while len(ids) < room:
            await self._here().open.wait()
            version = self.version
            request = self._request([*prompt, *ids], room - len(ids), params, number)
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

    async def probe(self, prompt: Sequence[int], params: SamplingParams) -> dict[str, Generation]:
        """Sample a turn on every server that is up; return them by address, without those that failed meanwhile."""
        ready = [slot for slot in self._slots if slot.version == self.version]
        request = self._request(prompt, params.max_tokens, params, 0)
        found = await asyncio.gather(*(self._send(slot, request, self.version) for slot in ready))
        return {slot.address: turn for slot, turn in zip(ready, found, strict=True) if turn is not None}

    def _request(self, ids: Sequence[int], room: int, params: SamplingParams, number: int) -> Request:
        return Request(
            ids,
            room,
            params.temperature,
            params.top_p,
            seed_of(params, number, len(ids)),
            self._label(self.version),
            tuple(self._spec.end_ids),
            params.stop,
            adapter=self._adapter,
        )

    async def _ask(self, request: Request, conversation: str, version: int) -> Generation | None:
        """Send one request to its conversation's server; return None if it must be repeated."""
        slot = self._slot_of(conversation)
        if slot is None:
            await self._wait_for_any()
            return None
        return await self._send(slot, request, version)

    async def _send(self, slot: Slot, request: Request, version: int) -> Generation | None:
        slot.load += 1
        try:
            found = await self._watched(slot, self._server(slot).generate(request))
            slot.restarts = 0
            return found
        except WrongWeights as fault:
            if version == self.version:
                log.warning("server %d answered with %s; its weights are loaded again", slot.number, fault)
                slot.version = -1
                self._restore(slot)
            return None
        except ServerDown as fault:
            self._mark_down(slot, fault)
            return None
        finally:
            slot.load -= 1

    async def _watched(self, slot: Slot, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Await a call that may take long; raises ServerDown if the server stops answering others meanwhile."""
        return await while_healthy(call, lambda: self._healthy(slot), slot.address, self._spec.watch_seconds)

    async def _healthy(self, slot: Slot) -> bool:
        return await self._server(slot).healthy(self._spec.health_seconds)

    def _slot_of(self, conversation: str) -> Slot | None:
        """Return the server that holds this conversation's cache if it is up, else the one with the least load."""
        ready = [slot for slot in self._slots if slot.version == self.version]
        if not ready:
            return None
        home = self._homes.get(conversation, -1)
        if home < 0 or self._slots[home].version != self.version:
            home = min(ready, key=lambda slot: (slot.load, slot.number)).number
        self._homes[conversation] = home
        self._homes.move_to_end(conversation)
        while len(self._homes) > REMEMBERED:
            self._homes.popitem(last=False)
        return self._slots[home]

    async def _wait_for_any(self) -> None:
        session = self._here()
        for slot in self._slots:
            if slot.version != self.version:
                self._restore(slot)
        waiting = list(session.restoring.values())
        if waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            errors = [error for error in (task.exception() for task in done) if error is not None]
            final = [e for e in errors if self.given or isinstance(e, PolicyLost)]  # ours restart a few times
            if final and not session.restoring and not any(slot.version >= 0 for slot in self._slots):
                raise PolicyLost(str(final[0]))
            if errors:
                await asyncio.sleep(RETRY_SECONDS)

    def _mark_down(self, slot: Slot, fault: ServerDown) -> None:
        """Note that a server is down and bring it back."""
        if slot.version >= 0:
            log.warning("server %d is down (%s); its turns move to the others", slot.number, fault)
            slot.version = -1
        self._restore(slot)

    def _restore(self, slot: Slot) -> None:
        """Bring a server back in the background, once."""
        session = self._here()
        if slot.number not in session.restoring:
            task = asyncio.create_task(self._bring_up(slot))
            session.restoring[slot.number] = task
            task.add_done_callback(lambda _: session.restoring.pop(slot.number, None))
            task.add_done_callback(note_failure)

    async def _bring_up(self, slot: Slot) -> None:
        """Start a server, or wait for one given by address, until it holds the current weights."""
        if self._spec.start is None:
            slot.address = self._spec.addresses[slot.number]
            await self._await_health(slot, self._spec.lost_seconds if self.release else self._spec.first_seconds)
        elif slot.process is None or not slot.process.running or not await self._healthy(slot):
            await self._start(slot)
        await self._update(slot)

    async def _start(self, slot: Slot) -> None:
        assert self._spec.start is not None
        if self._closed:
            raise PolicyLost("the fleet was closed")
        if slot.process is not None:
            slot.restarts += 1
            self.restarts += 1
            if slot.restarts > MAX_RESTARTS:
                raise PolicyLost(f"server {slot.number} died {MAX_RESTARTS} times in a row: see {slot.process.log}")
            await asyncio.to_thread(slot.process.end)
        # The folder of the current weights may be replaced while the server starts; it is loaded afterwards.
        model = self._spec.base or self._first
        slot.process, slot.address = await asyncio.to_thread(self._spec.start, slot.number, model)
        await self._await_health(slot, self._spec.start_seconds)

    async def _await_health(self, slot: Slot, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while not await self._healthy(slot):
            if slot.process is not None and not slot.process.running:
                raise ServerDown(
                    f"the vLLM server ended while it started; log: {slot.process.log}\n{slot.process.said()}"
                )
            if asyncio.get_running_loop().time() > end:
                raise ServerDown(f"no vLLM server answers at {slot.address} after {seconds:.0f} s")
            await asyncio.sleep(0.5)

    async def _update(self, slot: Slot) -> None:
        """Load the current weights; a server that fails is down until it is restored."""
        while slot.version != self.version:
            version = self.version
            try:
                await self._watched(slot, self._load_into(self._server(slot), self._label(version)))
            except ServerDown as fault:
                if version != self.version:
                    continue  # its folder is gone if newer weights have replaced it
                if slot.version < 0:
                    raise
                self._mark_down(slot, fault)
                return
            slot.version = version

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

    def _server(self, slot: Slot) -> Server:
        return Server(slot.address, self._here().client, self._spec.key)

    def _here(self) -> Session:
        """Return the client and the locks of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            self._session = Session(loop, self._spec.request_seconds)
        return self._session

    def close(self) -> None:
        """Stop the servers that were started here; none is started again."""
        self._closed = True
        for process in self.processes:
            process.end()
