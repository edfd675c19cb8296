"""Harnesses in real sandboxes: a small one made of one Python file stands for any."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from arise.config.agent import HarnessAgentConfig
from arise.endpoint.policy import Policy
from arise.endpoint.serving import Endpoint, on_socket
from arise.endpoint.sessions import CallLimits
from arise.errors import AriseError
from arise.harnesses.agent import HarnessAgent
from arise.harnesses.install import install, status
from arise.harnesses.launch import Launcher
from arise.harnesses.spec import Harness, Values, harness, names
from arise.ports import PolicyLost, SandboxLost
from arise.rollouts.time_limit import WithinTime
from arise.sandbox import BubblewrapPool, BubblewrapSandbox
from arise.types import ShownSkill, StopReason, Task, Trajectory
from arise.types.chat import Message
from tests.task_folders import bare_task
from tests.unit.endpoint.byte_format import ByteFormat
from tests.unit.endpoint.served import ScriptedEngine, saying
from tests.verifiers import bubblewrap_verifier

PROGRAM = """
import json, os, sys, urllib.error, urllib.request

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
messages = [{"role": "system", "content": "You work."}, {"role": "user", "content": open(sys.argv[1]).read()}]
while True:
    body = json.dumps({"model": "policy", "messages": messages, "tools": TOOLS}).encode()
    headers = {"authorization": "Bearer " + os.environ["KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["URL"] + "/v1/chat/completions", body, headers)
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        said = os.popen("(" + command + ") 2>&1").read()
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})
"""
MINIATURE = Harness(
    "miniature",
    "python3 {{home}}/program.py {{instruction}}",
    env={"URL": "{{url}}", "KEY": "{{key}}"},
    files={"{{home}}/program.py": PROGRAM},
)
TASK = Task("t", 'Write 42 to answer.txt -- don\'t ask "why" $HOME\n')
DONE = Message("assistant", "done")


def bash(command: str) -> Message:
    from arise.types.chat import FunctionCall

    return Message("assistant", "", calls=(FunctionCall("", "bash", {"command": command}),))


class Attempt:
    """One attempt of the miniature harness with a scripted policy."""

    def __init__(self, *turns: Message, **options: Any) -> None:
        window, seconds = options.pop("window", 100_000), options.pop("sampling", 0.0)
        self.engine = ScriptedEngine(ByteFormat(), saying(*(turns or (DONE,))), window, seconds)
        self.harness: Harness = options.pop("harness", MINIATURE)
        self.limits = CallLimits(options.pop("calls", 10))
        self.seconds: float = options.pop("seconds", 60.0)
        self.agent_seconds: float | None = options.pop("agent_seconds", None)
        self.system: str = options.pop("system", "")
        self.shown: tuple[ShownSkill, ...] = options.pop("shown", ())
        self.files: dict[str, str] = {}
        self.token = ""

    async def run(self, tests: Path | None = None) -> Trajectory:
        async with (
            on_socket() as endpoint,
            BubblewrapPool(1, read_only=(str(endpoint.socket.parent),)) as pool,
        ):
            sandbox = await pool.open()
            try:
                return await self._attempt(endpoint, sandbox, tests)
            finally:
                await sandbox.close()

    async def _attempt(self, endpoint: Endpoint, sandbox: BubblewrapSandbox, tests: Path | None) -> Trajectory:
        policy = Policy(self.engine, self.engine.format)
        agent = HarnessAgent(Launcher(self.harness, endpoint, seconds=self.seconds), policy, self.limits, "BASE")
        timed = WithinTime(sandbox, self.agent_seconds)
        trajectory = await agent.attempt(TASK, timed, f"BASE{self.system}", self.shown, "k0/t/0", 0)
        assert endpoint.sessions.open == {}
        (self.token,) = endpoint.sessions.revoked
        if tests is not None:
            async with bubblewrap_verifier(1) as verifier:
                result = await verifier.verify(sandbox, bare_task(tests))
                self.files["verifier"] = result.stdout
        return trajectory


def run(attempt: Attempt, tests: Path | None = None) -> Trajectory:
    return asyncio.run(attempt.run(tests))


def test_a_harness_works_in_the_sandbox_and_leaves_one_row() -> None:
    trajectory = run(Attempt(bash("echo 42 > answer.txt; cat answer.txt"), DONE))
    assert trajectory.stop is StopReason.FINISHED
    assert [turn.text for turn in trajectory.turns] == ["", "done"]
    assert trajectory.turns[0].observations[0].text == "42\n"
    assert len(trajectory.rows) == 1
    assert trajectory.generated_tokens > 0


def test_the_instruction_arrives_letter_by_letter() -> None:
    attempt = Attempt(DONE)
    run(attempt)
    ids, _ = attempt.engine.asked[0]
    assert TASK.instruction in attempt.engine.format.text(ids)


def test_the_sandbox_reaches_nothing_but_the_endpoint() -> None:
    probe = "python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 2)\""
    trajectory = run(Attempt(bash(probe), DONE))
    seen = trajectory.turns[0].observations[0].text
    assert "Network is unreachable" in seen


def test_skills_are_in_the_prompt_of_guided_rollouts_only() -> None:
    guided = run(Attempt(DONE, system="\nGuidance :\n- check it", shown=(ShownSkill("r1", 2),)))
    assert guided.system_prompt == "You work.\n\nGuidance :\n- check it"
    assert guided.shown_skills == (ShownSkill("r1", 2),)
    plain = run(Attempt(DONE))
    assert plain.system_prompt == "You work."
    assert plain.shown_skills == ()


def test_limits_end_the_attempt_with_their_reason() -> None:
    assert run(Attempt(bash("ls"), calls=2)).stop is StopReason.TURN_LIMIT
    assert run(Attempt(bash("sleep 60"), DONE, seconds=3.0)).stop is StopReason.TIME_LIMIT
    assert run(Attempt(bash("sleep 60"), DONE, agent_seconds=4.0)).stop is StopReason.TIME_LIMIT


def test_an_attempt_that_fills_its_window_is_verified_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text("cat answer.txt; echo 1 > /logs/verifier/reward.txt\n")
    attempt = Attempt(bash("echo 42 > answer.txt; seq 1000"), window=2000)
    trajectory = run(attempt, tmp_path)
    assert trajectory.stop is StopReason.CONTEXT_LIMIT
    assert (len(trajectory.turns), len(trajectory.rows)) == (1, 1)
    assert "42" in attempt.files["verifier"]


def test_a_first_prompt_that_does_not_fit_is_a_fault_with_its_remedy() -> None:
    with pytest.raises(PolicyLost, match=r"first prompt of miniature does not fit .* 60 tokens: raise sampling"):
        run(Attempt(window=60))


def test_a_policy_that_dies_is_a_fault() -> None:
    attempt = Attempt(bash("ls"))
    attempt.engine.broken = True
    with pytest.raises(PolicyLost, match="the sampler was killed"):
        run(attempt)


def test_a_harness_that_never_calls_is_a_fault_that_shows_what_it_said() -> None:
    with pytest.raises(SandboxLost, match=r"miniature ended without a call.*cannot find it"):
        run(Attempt(harness=replace(MINIATURE, command="echo cannot find it; exit 3")))


def test_what_the_agent_does_to_the_endpoint_is_no_fault() -> None:
    abuse = 'curl -s $URL/v1/chat/completions -H "authorization: Bearer $KEY" -d \'{"messages": 5}\'; pkill -f relay'
    trajectory = run(Attempt(bash(abuse), DONE))
    assert trajectory.stop is StopReason.FINISHED
    assert len(trajectory.rows) == 1


def test_the_verifier_sees_no_key_of_the_endpoint(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(
        "env; cat /proc/*/environ | tr '\\0' '\\n'; ls /tmp /app; echo 1 > /logs/verifier/reward.txt\n"
    )
    attempt = Attempt(bash("echo 42 > answer.txt"), DONE)
    run(attempt, tmp_path)
    assert "answer.txt" in attempt.files["verifier"]
    assert attempt.token.startswith("arise-")
    assert "arise-" not in attempt.files["verifier"]
    assert "KEY=" not in attempt.files["verifier"]


def test_every_harness_that_ships_is_a_kind_of_agent() -> None:
    assert set(get_args(HarnessAgentConfig.model_fields["kind"].annotation)) == set(names())


@pytest.mark.parametrize("name", names())
def test_templates_name_known_values_only(name: str) -> None:
    spec = harness(name)
    values = Values("URL", "KEY", "MODEL", "HOME", "INSTRUCTION", "INSTALL", "8192", "512")
    texts: Sequence[str] = (spec.command, *spec.env.values(), *spec.files, *spec.files.values())
    filled = [values.fill(text) for text in texts]
    assert not [text for text in filled if "{{" in text]
    assert any("URL" in text for text in filled)
    assert any("KEY" in text for text in filled)
    assert "INSTRUCTION" in values.fill(spec.command)
    assert all((spec.packages, spec.tested, spec.about))


def test_an_unknown_or_missing_harness_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path))
    with pytest.raises(AriseError, match="mini-swe-agent"):
        install("minni", print)
    found = status("pi")
    assert not found.usable
    assert found.remedy == "arise harness install pi"
