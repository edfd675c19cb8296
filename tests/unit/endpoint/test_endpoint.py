"""The endpoint over HTTP: keys, limits, retries, faults, and that every turn is committed before it is seen."""

import json
from typing import Any

import httpx2 as httpx
import pytest

from arise.endpoint.rows import export
from arise.endpoint.sessions import OVERFLOWS, CallLimits
from arise.harnesses.agent import stop_of
from arise.harnesses.launch import Ended
from arise.types import StopReason
from tests.unit.endpoint.served import DONE, LS, SYSTEM, TOOL, USER, Served, use


@pytest.mark.parametrize("how", ["bearer", "x-api-key", "path"])
def test_the_key_is_accepted_wherever_clients_put_it(how: str) -> None:
    async def work(found: Served) -> None:
        token = found.session.token
        body = {"model": "any", "messages": [USER]}
        path = f"/r/{token}/v1/chat/completions" if how == "path" else "/v1/chat/completions"
        headers = {
            "bearer": {"authorization": f"Bearer {token}"},
            "x-api-key": {"x_api_key": token},
            "path": {"a": "b"},
        }
        answer = await found.post(path, body, **headers[how])
        assert answer.json()["choices"][0]["message"]["content"] == "done"

    use(work)


def test_a_wrong_key_is_refused_and_an_expired_one_is_named() -> None:
    async def work(found: Served) -> None:
        wrong = await found.post("/v1/chat/completions", {"messages": [USER]}, authorization="Bearer no")
        assert wrong.status_code == 401
        assert wrong.json()["error"]["code"] == "invalid_api_key"
        await found.endpoint.sessions.end(found.session)
        late = await found.chat([USER])
        assert late.status_code == 409
        assert "ended" in late.json()["error"]["message"]
        assert found.session.history.calls == []

    use(work)


def test_a_whole_conversation_with_tools_is_one_row_of_what_was_sent() -> None:
    async def work(found: Served) -> None:
        first = (await found.chat([SYSTEM, USER], tools=[TOOL])).json()["choices"][0]
        assert first["finish_reason"] == "tool_calls"
        message = first["message"]
        assert message["reasoning_content"] == "hm"
        assert json.loads(message["tool_calls"][0]["function"]["arguments"])["command"] == "ls"
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "a b"}
        del message["reasoning_content"]
        last = await found.chat([SYSTEM, USER, message, result], tools=[TOOL])
        assert last.json()["choices"][0]["finish_reason"] == "stop"
        prompts = [ids for ids, _ in found.engine.asked]
        calls = found.session.history.calls
        assert prompts[1][: len(prompts[0])] == prompts[0]
        (row,) = export(found.session.history).rows
        assert tuple(row.ids_U) == prompts[1] + calls[1].segment.ids

    use(work, LS, DONE)


def test_token_fields_come_in_the_form_of_vllm_when_asked() -> None:
    async def work(found: Served) -> None:
        plain = (await found.chat([USER])).json()
        assert "prompt_token_ids" not in plain
        asked = (await found.chat([USER], return_token_ids=True, logprobs=True)).json()
        choice = asked["choices"][0]
        assert tuple(asked["prompt_token_ids"]) == found.engine.asked[1][0]
        assert tuple(choice["token_ids"]) == found.session.history.calls[1].segment.ids
        assert [item["logprob"] for item in choice["logprobs"]["content"]] == [-0.5] * len(choice["token_ids"])

    use(work)


def test_the_server_sets_sampling_and_the_smaller_limit_counts() -> None:
    async def work(found: Served) -> None:
        await found.chat([USER], temperature=0.1, top_p=0.2, seed=99, max_tokens=500)
        await found.chat([USER], max_completion_tokens=2)
        one, two = (params for _, params in found.engine.asked)
        assert (one.temperature, one.top_p, one.seed, one.max_tokens) == (1.0, 1.0, 7, 50)
        assert two.max_tokens == 2
        assert one.conversation != two.conversation  # an unmarked repetition is another sample
        assert found.session.history.calls[1].segment.finish == "length"

    use(work, limits=CallLimits(tokens_per_call=50))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("stop", ["x"]),
        ("logit_bias", {"5": 1}),
        ("response_format", {"type": "json_object"}),
        ("tool_choice", "required"),
        ("frequency_penalty", 0.5),
        ("top_logprobs", 5),
        ("functions", [{"name": "f"}]),
        ("messages", [{"role": "user", "content": [{"type": "image_url"}]}]),
        ("messages", [{"role": "judge", "content": "x"}]),
        ("messages", "hello"),
        ("max_tokens", 0),
        ("messages", [USER, {"role": "assistant", "content": "prefill"}]),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(field: str, value: object) -> None:
    async def work(found: Served) -> None:
        body = {"model": "any", "messages": [USER], field: value}
        answer = await found.post("/v1/chat/completions", body)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["param"].startswith(field)
        assert found.engine.asked == []

    use(work)


def test_a_body_that_is_no_json_is_refused() -> None:
    async def work(found: Served) -> None:
        headers = {"authorization": f"Bearer {found.session.token}"}
        for body in (b"{", b"[1]", b"\xff"):
            answer = await found.client.post("/v1/chat/completions", content=body, headers=headers)
            assert answer.status_code == 400

    use(work)


EXITED = Ended("exit", 0, "")
MESSAGES_TOOL = {"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}
RESPONSES_TOOL = {"type": "function", "name": "bash", "description": "Run.", "parameters": {"type": "object"}}
DIALECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"model": "m", "tools": [TOOL]}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 50, "tools": [MESSAGES_TOOL]}),
    "responses": ("/v1/responses", {"model": "m", "tools": [RESPONSES_TOOL]}),
}


def overflow_of(dialect: str, stream: bool, answer: httpx.Response) -> bool:
    """Tell whether a client of this dialect recognises that its prompt does not fit."""
    if dialect == "responses" and stream:
        assert answer.status_code == 200
        event = json.loads(answer.text.partition("data: ")[2])
        assert answer.text.startswith("event: response.failed\n")
        return bool(event["response"]["error"]["code"] == "context_length_exceeded")
    assert answer.status_code == 400
    error = answer.json()["error"]
    if dialect == "messages":
        return bool(error["message"].startswith("prompt is too long: "))
    return bool(error["code"] == "context_length_exceeded")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_attempt_that_fills_its_window_is_told_so_in_its_dialect_and_ends_as_one(dialect: str, stream: bool) -> None:
    async def work(found: Served) -> None:
        path, fixed = DIALECTS[dialect]
        field = "input" if dialect == "responses" else "messages"
        said = [{"role": "user", "content": "Fix it."}]
        answer = await found.post(path, {**fixed, field: said, "stream": stream})
        assert answer.status_code == 200
        assert stop_of(found.session, EXITED) is StopReason.FINISHED
        said += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "x" * 600}]
        answer = await found.post(path, {**fixed, field: said, "stream": stream})
        assert overflow_of(dialect, stream, answer)
        assert stop_of(found.session, EXITED) is StopReason.CONTEXT_LIMIT
        assert len(export(found.session.history).rows) == 1
        said[-1]["content"] = "compacted"
        answer = await found.post(path, {**fixed, field: said, "stream": stream})
        assert answer.status_code == 200
        assert stop_of(found.session, EXITED) is StopReason.FINISHED

    use(work, window=600)


def test_a_client_that_never_compacts_is_ended() -> None:
    async def work(found: Served) -> None:
        await found.chat([USER])
        for _ in range(OVERFLOWS):
            assert not found.session.over.is_set()
            answer = await found.chat([{"role": "user", "content": "x" * 300}])
            assert answer.json()["error"]["code"] == "context_length_exceeded"
        assert found.session.over.is_set()
        assert stop_of(found.session, Ended("session", 0, "")) is StopReason.CONTEXT_LIMIT

    use(work, window=200)


def test_a_tool_result_of_64_megabytes_arrives_and_overflows_in_the_dialects_own_words() -> None:
    async def work(found: Served) -> None:
        message = (await found.chat([USER], tools=[TOOL])).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "x" * (64 << 20)}
        answer = await found.chat([USER, message, result], tools=[TOOL])
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "context_length_exceeded"
        result["content"] = "y" * 90_000
        answer = await found.chat([USER, message, result], tools=[TOOL])
        assert answer.status_code == 200
        assert len(export(found.session.history).rows) == 1

    use(work, LS, DONE)


def test_guidance_is_appended_last_to_the_system_message_of_agent_conversations_only() -> None:
    async def work(found: Served) -> None:
        await found.chat([SYSTEM, USER], tools=[TOOL])
        await found.chat([{"role": "system", "content": "Write a title."}, USER])
        await found.chat([USER], tools=[TOOL])
        systems = [call.inputs[0].text for call in found.session.history.calls]
        assert systems == ["You work.\n\nGuidance:\n- check", "Write a title.", "Guidance:\n- check"]
        assert export(found.session.history).system_prompt == systems[0]

    use(work, guidance="Guidance:\n- check")


def test_a_slow_answer_is_preceded_by_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    from arise.endpoint import app
    from arise.endpoint.sessions import Sessions

    create = app.create_app

    def impatient(sessions: Sessions) -> object:
        return create(sessions, 0.05)

    monkeypatch.setattr("arise.endpoint.serving.create_app", impatient)

    async def work(found: Served) -> None:
        answer = await found.chat([USER], stream=True)
        assert answer.text.startswith(": keepalive\n: keepalive\n")
        assert answer.text.endswith("data: [DONE]\n\n")
        body = {"model": "m", "max_tokens": 10, "messages": [USER], "stream": True}
        answer = await found.post("/v1/messages", body)
        assert answer.text.startswith("event: ping\n")
        found.engine.broken = True
        answer = await found.chat([USER], stream=True)
        assert "event: error" in answer.text

    use(work, seconds=0.3)


def test_counting_tokens_records_nothing() -> None:
    async def work(found: Served) -> None:
        answer = await found.post("/v1/messages/count_tokens", {"model": "m", "messages": [USER]})
        assert answer.json() == {"input_tokens": len("Fix it.") + 3}
        models = await found.client.get("/v1/models", headers={"x-api-key": found.session.token})
        assert [(model["id"], model["max_model_len"]) for model in models.json()["data"]] == [("policy", 100_000)]
        assert found.session.history.calls == []
        assert (await found.client.get("/healthz")).json() == {"status": "ok"}

    use(work)
