"""Sessions: retries, clients that leave, faults and limits; every turn is committed before it is seen."""

import asyncio
import json

from arise.endpoint.rows import export
from arise.endpoint.sessions import CallLimits
from arise.types import StopReason
from tests.unit.endpoint.served import SYSTEM, TOOL, USER, Served, use


def test_a_marked_retry_gets_the_same_bytes_and_samples_nothing() -> None:
    async def work(found: Served) -> None:
        body = {"model": "any", "messages": [USER]}
        key = {"authorization": f"Bearer {found.session.token}"}
        first = await found.post("/v1/chat/completions", body, **key)
        again = await found.post("/v1/chat/completions", body, x_stainless_retry_count="1", **key)
        assert again.content == first.content
        assert len(found.session.history.calls) == 1
        await found.post("/v1/chat/completions", body, **key)
        assert len(found.session.history.calls) == 2
        assert len(export(found.session.history).rows) == 1

    use(work, seconds=0.01)


def test_a_dropped_request_is_sampled_once_and_its_retry_finds_the_answer() -> None:
    async def work(found: Served) -> None:
        body = {"model": "any", "messages": [USER], "stream": True}
        key = {"authorization": f"Bearer {found.session.token}"}
        leaving = asyncio.create_task(found.post("/v1/chat/completions", body, **key))
        await asyncio.sleep(0.1)
        leaving.cancel()
        answer = await found.post("/v1/chat/completions", body, x_stainless_retry_count="1", **key)
        assert "done" in answer.text
        assert len(found.engine.asked) == len(found.session.history.calls) == 1

    use(work, seconds=0.4)


def test_equal_requests_are_sampled_differently_one_after_another_and_at_once() -> None:
    async def work(found: Served) -> None:
        await asyncio.gather(*(found.chat([USER]) for _ in range(4)))
        await found.chat([USER])
        assert len({params.conversation for _, params in found.engine.asked}) == 5

    use(work, seconds=0.2)


def test_every_turn_is_present_when_the_client_leaves_on_the_last_event() -> None:
    async def work(found: Served) -> None:
        key = {"authorization": f"Bearer {found.session.token}"}
        for n in range(200):
            path, last = [
                ("/v1/chat/completions", "[DONE]"),
                ("/v1/messages", "message_stop"),
                ("/v1/responses", "response.completed"),
            ][n % 3]
            content = [{"role": "user", "content": f"turn {n}"}]
            body = {"stream": True, "max_tokens": 9, "messages": content}
            if n % 3 == 2:
                body = {"stream": True, "input": content}
            async with found.client.stream("POST", path, content=json.dumps(body), headers=key) as answer:
                async for line in answer.aiter_lines():
                    if last in line:
                        break
                assert len(found.session.history.calls) == n + 1

    use(work)


def test_a_sampler_that_dies_makes_the_rollout_a_fault() -> None:
    async def work(found: Served) -> None:
        await found.chat([USER], tools=[TOOL])
        found.engine.broken = True
        answer = await found.chat([USER, {"role": "assistant", "content": "done"}, USER], tools=[TOOL])
        assert answer.status_code == 503
        assert "the sampler was killed" in found.session.fault
        assert found.session.over.is_set()
        late = await found.chat([USER])
        assert late.status_code == 409

    use(work)


def test_limits_end_the_session_and_say_which() -> None:
    async def work(found: Served) -> None:
        for n in range(2):
            assert (await found.chat([{"role": "user", "content": str(n)}])).status_code == 200
        answer = await found.chat([USER])
        assert answer.status_code == 400
        assert "2 turns" in answer.json()["error"]["message"]
        assert found.session.stop is StopReason.TURN_LIMIT
        assert found.session.over.is_set()

    use(work, limits=CallLimits(calls=2))

    async def tokens(found: Served) -> None:
        await found.chat([USER])
        assert (await found.chat([SYSTEM, USER])).json()["usage"]["completion_tokens"] == 2
        assert (await found.chat([USER])).status_code == 400
        assert found.session.stop is StopReason.TOKEN_LIMIT

    use(tokens, limits=CallLimits(tokens=7))


def test_weights_that_change_within_a_turn_are_recorded_token_by_token() -> None:
    async def work(found: Served) -> None:
        await found.chat([USER], tools=[TOOL])
        (row,) = export(found.session.history).rows
        sampled = row.version_U[row.generated_U].tolist()
        assert sampled == [3] * 2 + [4] * (len(sampled) - 2)
        assert set(row.version_U[~row.generated_U].tolist()) == {-1}

    use(work, versions=(3, 3))


def test_what_a_session_holds_does_not_grow_with_the_square_of_its_calls() -> None:
    async def work(found: Served) -> None:
        messages = [SYSTEM, USER]
        for _ in range(50):
            answer = (await found.chat(messages, tools=[TOOL])).json()["choices"][0]["message"]
            messages += [answer, {"role": "user", "content": "go on"}]
        kept = [task.result() for task in found.session._answers.values()]
        assert sum(len(answer.prompt_ids) for answer in kept) == 0
        stored = sum(len(call.added) + len(call.segment.ids) for call in found.session.history.calls)
        assert stored == len(export(found.session.history).rows[0])

    use(work)
