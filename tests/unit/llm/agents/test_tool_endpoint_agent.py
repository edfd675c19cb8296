"""The tool agent with a model behind an endpoint: native calls, servers without tools, replies that are no calls."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from arise.config import AgentConfig, ToolAgentConfig
from arise.config.agent import ShellAgentConfig
from arise.config.llm import BudgetConfig, EndpointConfig
from arise.llm.agents.agent import endpoint_agent
from arise.llm.agents.tool_agent import native_reply, plain_reply
from arise.ports import PolicyLost
from arise.rollouts.tools import SPECS
from arise.sandbox import BubblewrapPool
from arise.testing.fake_llm import Action, Ask, FakeLLM, Say, Script, Status
from arise.types import FunctionCall, Place, Reply, StopReason, Task, Trajectory
from tests.tool_models import limits


def attempt(script: Script, folder: Path, agent: AgentConfig | None = None) -> tuple[Trajectory, list[Ask]]:
    """One attempt of the tool agent, or another, against a scripted server; its first call is answered for it."""

    def answer(ask: Ask) -> Any:
        return Say("ok", prompt_tokens=20, completion_tokens=1) if "first_call" in ask.user else script(ask)

    async def run() -> tuple[Trajectory, list[Ask]]:
        async with FakeLLM(answer) as fake, BubblewrapPool(1) as pool:
            endpoint = EndpointConfig(model="m", base_url=fake.base_url, max_tokens=64)
            record = folder / "calls.db"
            chosen = agent or limits()
            async with endpoint_agent(endpoint, chosen, BudgetConfig(), record, lambda *_: None) as opened:
                sandbox = await pool.open(Place())
                try:
                    found = await opened.attempt(Task("t", "Do it."), sandbox, "Use tools.", (), "k0/t/0", 0)
                finally:
                    await sandbox.close()
            return found, [ask for ask in fake.asks if "first_call" not in ask.user]

    return asyncio.run(run())


def script(*actions: Action) -> Script:
    """The actions in order, whatever is asked."""
    left = list(actions)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_native_calls_are_run_and_answered_by_their_ids(tmp_path: Path) -> None:
    calls = (("bash", {"command": "cat > f <<'E'\na\nb\nE"}), ("bash", {"command": "wc -l < f"}))
    trajectory, asks = attempt(script(Say("", calls=calls), Say("Done.")), tmp_path)
    assert trajectory.stop is StopReason.FINISHED
    assert [seen.text.strip() for seen in trajectory.turns[0].observations] == ["(no output)", "2"]
    assert [tool["function"]["name"] for tool in asks[0].body["tools"]] == ["bash"]
    said, *results = asks[1].body["messages"][2:]
    ids = [call["id"] for call in said["tool_calls"]]
    assert [(result["role"], result["tool_call_id"]) for result in results] == [("tool", ids[0]), ("tool", ids[1])]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == calls[0][1]


def test_a_server_without_tools_is_asked_in_text_from_then_on(tmp_path: Path) -> None:
    refused = Status(400, body=json.dumps({"error": {"message": "unknown field tools"}}))
    fenced = Say("First:\n```bash\necho hi\n```")
    trajectory, asks = attempt(script(refused, fenced, Say("Done.")), tmp_path)
    assert trajectory.turns[0].observations[0].text == "hi"
    assert ["tools" in ask.body for ask in asks] == [True, False, False]
    assert "You can call these tools:" in asks[1].system
    assert asks[2].user == "<tool_response>\nhi\n</tool_response>"


def test_a_model_that_cannot_be_reached_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(PolicyLost, match="refused"):
        attempt(script(Status(400)), tmp_path)


AGENTS = pytest.mark.parametrize("agent", [limits(), ShellAgentConfig()], ids=["tools", "shell"])
FULL_WINDOW = [
    {"error": {"message": "Your input exceeds the limit.", "code": "context_length_exceeded"}},
    {"message": "This model's maximum context length is 2048 tokens. However, you requested 2100 tokens"},
    {"error": {"message": "The input (2100 tokens) is longer than the model's context length (2048 tokens)."}},
    {"error": {"message": "the request is too large", "type": "exceed_context_size_error", "n_ctx": 2048}},
    {"error": {"message": "prompt is too long: 212000 tokens > 200000 maximum"}},
    {"error": {"message": "The input token count (1048600) exceeds the maximum number of tokens allowed (1048575)."}},
    {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2040"},
]


@AGENTS
@pytest.mark.parametrize("body", FULL_WINDOW)
def test_a_conversation_that_outgrows_the_window_ends_the_attempt(
    tmp_path: Path, body: dict[str, Any], agent: AgentConfig
) -> None:
    acted = Say("$ seq 9", calls=(("bash", {"command": "seq 9"}),) if isinstance(agent, ToolAgentConfig) else ())
    trajectory, _ = attempt(script(acted, Status(400, body=json.dumps(body))), tmp_path, agent)
    assert trajectory.stop is StopReason.CONTEXT_LIMIT
    assert [len(turn.observations) for turn in trajectory.turns] == [1]


@AGENTS
def test_a_first_prompt_that_does_not_fit_is_a_fault_with_its_remedy(tmp_path: Path, agent: AgentConfig) -> None:
    full = Status(400, body=json.dumps(FULL_WINDOW[0]))
    with pytest.raises(PolicyLost, match=r"the first prompt does not fit .* longer window"):
        attempt(script(full), tmp_path, agent)


def test_any_other_refusal_after_the_first_turn_is_a_fault(tmp_path: Path) -> None:
    odd = Status(400, body=json.dumps({"error": {"message": "tool_call_id is unknown"}}))
    with pytest.raises(PolicyLost, match="refused: HTTP 400: tool_call_id is unknown"):
        attempt(script(Say("", calls=(("bash", {"command": "ls"}),)), odd), tmp_path)


def test_arguments_that_are_no_json_are_answered(tmp_path: Path) -> None:
    broken = {"tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": "{'command': 1}"}}]}
    reply = native_reply(json.dumps({"content": "", "reasoning": "", **broken}))
    assert reply.calls == ()
    assert reply.malformed.startswith("the arguments of bash are not valid JSON")
    assert "bash" in reply.text


@pytest.mark.parametrize(
    ("call", "why"),
    [("x", "no function name"), ({"function": {"name": "bash", "arguments": "[1]"}}, "not a JSON object")],
)
def test_what_is_no_call_is_malformed(call: Any, why: str) -> None:
    reply = native_reply(json.dumps({"content": "hm", "reasoning": "r", "tool_calls": [call]}))
    assert (reply.text, reply.reasoning, reply.calls, why in reply.malformed) == ("hm", "r", (), True)


def test_a_reply_in_text_has_reasoning_text_and_calls() -> None:
    block = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    found = plain_reply(f"<think>hm</think>\nLook. {block}", [SPECS["bash"]])
    assert (found.text, found.reasoning) == ("Look.", "hm")
    assert found.calls == (FunctionCall("call00000", "bash", {"command": "ls"}, block),)
    assert plain_reply("```bash\nls", [SPECS["bash"]]) == Reply(
        "```bash\nls", malformed="the ```bash block has no closing ``` line"
    )
