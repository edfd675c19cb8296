"""A fleet against servers that speak vLLM's interface and fail on request."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.unit.engines.vllm.fake import FakeVllm

from arise.engines.faults import EngineFault
from arise.engines.remote.processes import Process
from arise.engines.vllm.fleet import Fleet
from arise.engines.vllm.server import seed_of
from arise.engines.vllm.spec import FleetSpec
from arise.ports import PolicyLost
from arise.types import SamplingParams

PROMPT = [5, 6, 7]


@pytest.fixture
def servers() -> Iterator[list[FakeVllm]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeVllm()) for _ in range(2)]


def fleet_of(servers: list[FakeVllm], **options: float | str) -> Fleet:
    spec = FleetSpec(None, 0, [s.address for s in servers], frozenset([1, 9]), 64, **options)  # type: ignore[arg-type]
    return Fleet(spec)


def test_a_turn_carries_ids_logprobs_and_versions(servers: list[FakeVllm]) -> None:
    async def run() -> None:
        fleet = fleet_of(servers[:1])
        await fleet.open("start", 3)
        turn = await fleet.turn(PROMPT, SamplingParams(4, stop=("x",), temperature=0.7), 0)
        assert (turn.ids, turn.logprobs, turn.versions) == ((103, 104, 105, 106), (-0.5,) * 4, (3,) * 4)
        assert turn.finish == "length"
        full = await fleet.turn([5] * 62, SamplingParams(50), 0)
        assert (full.finish, len(full.ids)) == ("context", 2)

    asyncio.run(run())
    sent = servers[0].requests[0]["sampling_params"]
    assert (sent["temperature"], sent["stop"], sent["stop_token_ids"]) == (0.7, ["x"], [1, 9])
    assert sent["include_stop_str_in_output"]


def test_the_cache_is_salted_by_run_and_version(servers: list[FakeVllm]) -> None:
    async def run() -> None:
        for _ in range(2):
            fleet = fleet_of(servers[:1])
            await fleet.open("start", 0)
            await fleet.turn(PROMPT, SamplingParams(1), 0)
            await fleet.load("next", 1)
            await fleet.turn(PROMPT, SamplingParams(1), 0)

    asyncio.run(run())
    salts = [request["cache_salt"] for request in servers[0].requests]
    assert len(set(salts)) == 4, "two runs on one server, two versions each"
    assert servers[0].loads == ["start", "next"] * 2


def test_a_running_turn_continues_under_the_new_weights(servers: list[FakeVllm]) -> None:
    server = servers[0]
    server.hold = True

    async def run() -> None:
        fleet = fleet_of([server])
        await fleet.open("start", 0)
        turn = asyncio.create_task(fleet.turn(PROMPT, SamplingParams(5), 0))
        while not server.requests:
            await asyncio.sleep(0.01)
        server.hold = False
        await fleet.load("next", 1)
        done = await turn
        assert done.versions == (0, 0, 1, 1, 1)
        assert done.ids == (103, 104, 105, 106, 107)

    asyncio.run(run())
    assert server.requests[1]["token_ids"] == [*PROMPT, 103, 104], "what was sampled is not sampled again"


def test_adapters_go_onto_the_base_model_and_again_onto_a_server_that_lost_them(servers: list[FakeVllm]) -> None:
    server = servers[0]

    async def run() -> None:
        fleet = fleet_of([server], base="base")
        await fleet.open("base", 0)
        await fleet.turn(PROMPT, SamplingParams(1), 0)
        await fleet.load("adapter-1", 1)
        await fleet.turn(PROMPT, SamplingParams(1), 0)
        server.adapter = ""  # as after a restart by its owner
        turn = await fleet.turn(PROMPT, SamplingParams(2), 0)
        assert turn.versions == (1, 1)

    asyncio.run(run())
    assert [request.get("model") for request in server.requests] == [None, "arise-policy", "arise-policy"]
    assert server.loads == ["adapter-1", "adapter-1"], "the base model is never loaded again"


@pytest.mark.parametrize("fault", ["drop", "stale", "-9999", "0.5"])
def test_a_failed_or_wrong_answer_is_asked_again_and_never_used(servers: list[FakeVllm], fault: str) -> None:
    server = servers[0]

    async def run() -> None:
        fleet = fleet_of([server])
        await fleet.open("start", 0)
        server.broken.append(fault)
        turn = await fleet.turn(PROMPT, SamplingParams(3), 0)
        assert turn.logprobs == (-0.5,) * 3
        assert turn.versions == (0,) * 3

    asyncio.run(run())
    assert len(server.requests) == 2
    assert server.loads == ["start", "start"], "a server in doubt gets its weights again before it is asked"


def test_conversations_stay_on_their_server_and_spread_over_the_fleet(servers: list[FakeVllm]) -> None:
    async def run() -> None:
        fleet = fleet_of(servers)
        await fleet.open("start", 0)
        for server in servers:
            server.hold = True  # the first turns overlap, so that load decides
        first = [asyncio.create_task(fleet.turn([n], SamplingParams(2, conversation=f"c{n}"), 0)) for n in range(6)]
        while sum(len(server.requests) for server in servers) < 6:
            await asyncio.sleep(0.01)
        for server in servers:
            server.hold = False
        await fleet.load("next", 1)
        await asyncio.gather(*first)
        for n in range(6):
            await fleet.turn([n], SamplingParams(2, conversation=f"c{n}"), 0)

    asyncio.run(run())
    homes = [{request["token_ids"][0] for request in server.requests} for server in servers]
    assert homes[0].isdisjoint(homes[1])
    assert [len(home) for home in homes] == [3, 3]


def test_the_turns_of_a_dead_server_move_to_another(servers: list[FakeVllm]) -> None:
    async def run() -> None:
        fleet = fleet_of(servers, lost_seconds=0.5)
        await fleet.open("start", 0)
        servers[0].__exit__(None, None, None)
        for n in range(4):
            assert len((await fleet.turn([n], SamplingParams(2, conversation=f"c{n}"), 0)).ids) == 2
        servers[1].__exit__(None, None, None)
        with pytest.raises(PolicyLost, match="no vLLM server answers"):
            await fleet.turn([9], SamplingParams(2), 0)

    asyncio.run(run())


def test_turns_and_updates_leave_a_server_that_falls_silent_with_its_connections_open(
    servers: list[FakeVllm],
) -> None:
    async def run() -> None:
        fleet = fleet_of(servers, lost_seconds=5.0, watch_seconds=0.1, health_seconds=0.2)
        await fleet.open("start", 0)
        servers[0].frozen.set()
        turns = [fleet.turn([n], SamplingParams(2, conversation=f"c{n}"), 0) for n in range(4)]
        assert [turn.versions for turn in await asyncio.gather(*turns)] == [(0, 0)] * 4
        servers[0].frozen.clear()
        while servers[0].weights != servers[1].weights:
            await asyncio.sleep(0.02)
        servers[1].frozen.set()
        await fleet.load("next", 1)
        assert (await fleet.turn([9], SamplingParams(2), 0)).versions == (1, 1)
        assert servers[0].loads[-1] == "next"

    asyncio.run(run())
    assert len(servers[1].requests) >= 4


def test_every_server_that_is_up_is_probed(servers: list[FakeVllm]) -> None:
    async def run() -> None:
        fleet = fleet_of(servers)
        await fleet.open("start", 0)
        found = await fleet.probe(PROMPT, SamplingParams(2))
        assert {address: turn.ids for address, turn in found.items()} == {s.address: (103, 104) for s in servers}
        servers[1].closed = True
        assert list(await fleet.probe(PROMPT, SamplingParams(2))) == [servers[0].address]

    asyncio.run(run())


def test_weights_are_published_while_a_server_is_down_and_it_takes_them_when_it_is_back(
    servers: list[FakeVllm],
) -> None:
    async def run() -> None:
        fleet = fleet_of(servers)
        await fleet.open("start", 0)
        servers[0].closed = True
        for n in range(2):
            await fleet.turn([n], SamplingParams(2, conversation=f"c{n}"), 0)
        await fleet.load("next", 1)
        assert (await fleet.turn([3], SamplingParams(2), 0)).versions == (1, 1)
        assert servers[0].loads == ["start"]
        servers[0].closed = False
        while servers[0].loads[-1] != "next" or servers[0].weights != servers[1].weights:
            await asyncio.sleep(0.05)

    asyncio.run(run())


def test_a_server_that_dies_between_turns_is_named_when_weights_are_loaded(
    servers: list[FakeVllm], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        fleet = fleet_of(servers, lost_seconds=0.5)
        await fleet.open("start", 0)
        servers[0].__exit__(None, None, None)
        await fleet.load("next", 1)
        assert (await fleet.turn([3], SamplingParams(2), 0)).versions == (1, 1)

    asyncio.run(run())
    assert [record.message.partition(" (")[0] for record in caplog.records] == ["server 0 is down"]


def test_a_server_is_started_again_from_the_first_weights_also_where_one_start_fails(
    servers: list[FakeVllm], tmp_path: Path
) -> None:
    server, started = servers[0], list[str]()

    def start(_: int, model: str) -> tuple[Process, str]:
        started.append(model)
        server.closed = len(started) == 2
        return Process(["false" if server.closed else "sleep", "300"], tmp_path / "log", {}), server.address

    async def run() -> None:
        fleet = Fleet(FleetSpec(start, 1, [], frozenset([1]), 64))
        try:
            await fleet.open("first", 0)
            await fleet.load("next", 1)
            server.closed = True
            assert (await fleet.turn(PROMPT, SamplingParams(2), 0)).versions == (1, 1)
        finally:
            fleet.close()

    asyncio.run(run())
    assert started == ["first", "first", "first"]
    assert server.loads == ["first", "next", "next"]


def test_a_server_that_cannot_be_reached_is_one_message_at_the_start() -> None:
    with FakeVllm() as gone:
        address = gone.address

    async def run() -> None:
        fleet = Fleet(FleetSpec(None, 0, [address], frozenset([1]), 64, lost_seconds=0.2, first_seconds=0.2))
        await fleet.open("start", 0)

    with pytest.raises(EngineFault, match=f"no vLLM server answers at {address}"):
        asyncio.run(run())


def test_seeds_differ_by_conversation_number_and_place_and_repeat() -> None:
    params = [SamplingParams(1, seed=s, conversation=c) for s in (0, 1) for c in ("a", "b")]
    seeds = [seed_of(p, number, place) for p in params for number in (0, 1) for place in (3, 4)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [seed_of(p, number, place) for p in params for number in (0, 1) for place in (3, 4)]
