"""Recording: conversations of another server become one file each, whole after every answer."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx

from arise.endpoint.recording import Recorder, StreamedReply
from arise.endpoint.serving import running
from arise.endpoint.upstream import recording_app
from arise.types.chat import Message
from tests.unit.endpoint.conversations import loose
from tests.unit.endpoint.served import saying, served

USER = {"role": "user", "content": "Fix it."}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": {"type": "object"}}}
LS, DONE = Message("assistant", "I look.", "", (loose("ls"),)), Message("assistant", "done")
Ask = Callable[..., Awaitable[httpx.Response]]


def record(folder: Path, work: Callable[[Ask], Awaitable[None]], token: str = "") -> list[dict[str, Any]]:
    """Talk to a scripted policy through the recorder; return what it wrote."""

    async def whole() -> None:
        async with served(saying(LS, DONE)) as found:
            upstream, proxy = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
            from arise.endpoint.app import create_app

            url = f"http://127.0.0.1:{upstream.getsockname()[1]}/v1"
            base = f"http://127.0.0.1:{proxy.getsockname()[1]}"
            async with (
                running(create_app(found.endpoint.sessions), upstream),
                recording_app(url, found.session.token, Recorder(folder), token) as app,
                running(app, proxy),
                httpx.AsyncClient(base_url=base) as client,
            ):

                async def ask(*messages: dict[str, Any], **more: Any) -> httpx.Response:
                    body = {"model": "m", "messages": list(messages), **more}
                    return await client.post("/v1/chat/completions", json=body)

                await work(ask)

    asyncio.run(whole())
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def test_a_conversation_is_one_file_with_tools_and_an_empty_outcome(tmp_path: Path) -> None:
    async def work(ask: Ask) -> None:
        said = (await ask(USER, tools=[TOOL])).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "a"}
        await ask(USER, said, result, tools=[TOOL], stream=True)
        await ask({"role": "user", "content": "another"}, tools=[TOOL])

    first, second = record(tmp_path, work)
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["messages"][-1]["content"] == "done"
    assert first["tools"] == [TOOL]
    assert first["outcome"] is None
    assert [message["role"] for message in second["messages"]] == ["user", "assistant"]


def test_refusals_are_returned_and_not_recorded(tmp_path: Path) -> None:
    async def work(ask: Ask) -> None:
        answer = await ask(USER, n=3)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "n"

    assert record(tmp_path, work) == []


def test_a_recorder_with_a_token_refuses_strangers(tmp_path: Path) -> None:
    async def work(ask: Ask) -> None:
        assert (await ask(USER)).status_code == 401

    assert record(tmp_path, work, token="x" * 20) == []


def test_a_stream_adds_up_however_it_is_cut() -> None:
    calls = [
        {"index": 0, "id": "c", "function": {"name": "bash", "arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
    ]
    deltas = [{"content": "hé"}, {"content": "y"}, {"reasoning_content": "hm"}, *({"tool_calls": [c]} for c in calls)]
    text = "".join(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in deltas) + "data: [DONE]\n\n"
    for size in (1, 7, 1000):
        reply, data = StreamedReply(), text.encode()
        ends = [reply.feed(data[at : at + size]) for at in range(0, len(data), size)]
        assert any(ends)
        message = reply.message()
        assert (message["content"], message["reasoning_content"]) == ("héy", "hm")
        assert message["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"a": 1}'}
