"""The first call: what it finds, and six ways to get an endpoint wrong, each refused with its remedy in seconds."""

import asyncio
import json
import time

import pytest

from arise.config import AgentConfig, Config
from arise.config.llm import BudgetConfig, EndpointConfig, PriceConfig
from arise.errors import AriseError
from arise.llm.client.spend import Budget
from arise.llm.first_call.first_call import FIRST_CALL, first_call
from arise.llm.first_call.needs import RUBRIC_CHARS, agent_needs, judge_needs, run_needs
from arise.llm.first_call.served import Needs, Served
from arise.llm.judge.trace import LEAST_TRACE_CHARS, trace_room
from arise.run.calls import Store
from arise.testing import Action, Ask, FakeLLM, Say, Script, Status, honest, in_thread, pages_of, speaking
from arise.types import Verdict

NEEDS = judge_needs(8, 2_000)
JUDGE = honest(lambda _rule, _ask: Verdict.PASS)
DEAD = "http://127.0.0.1:9/v1"
REMEDIES = {
    "wrong key": "check the key in A_KEY",
    "wrong model": "check the model's name (judge-model)",
    "small context": "a window of",
    "no usage": "say price = 0",
    "dead host": "check that a server runs at",
}


def server(wrong: str, small: int = 2_048) -> FakeLLM:
    """A server on which this is wrong; a small context has `small` tokens."""
    script: Script = speaking("vllm", JUDGE, key="right" if wrong == "wrong key" else "")
    window = small if wrong == "small context" else 32_768
    if wrong == "wrong model":
        script = speaking("vllm", JUDGE, model="another")
    if wrong == "no usage":
        script = lambda _ask: Say("ok", usage=False)  # noqa: E731
    return FakeLLM(script, pages=pages_of("vllm", window))


def call(endpoint: EndpointConfig, needs: Needs = NEEDS, store: Store | None = None, again: bool = False) -> Served:
    kept = store or Store(":memory:")
    return asyncio.run(first_call(endpoint, kept, Budget(kept, BudgetConfig()), "judge", needs, again=again))


@pytest.mark.parametrize("wrong", REMEDIES)
def test_a_mistake_is_refused_in_seconds_with_its_remedy(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "wrong")
    with in_thread(server(wrong)) as fake:
        url = DEAD if wrong == "dead host" else fake.base_url
        began = time.process_time()
        clock = time.monotonic()
        with pytest.raises(AriseError) as refused:
            call(EndpointConfig(model="judge-model", base_url=url, api_key_env="A_KEY"))
        assert time.process_time() - began < 5
        assert time.monotonic() - clock < 30, "5 s on a machine that does nothing else"
    assert REMEDIES[wrong] in refused.value.remedy
    assert all(FIRST_CALL in ask.data for ask in fake.asks)


def test_no_key_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    with pytest.raises(AriseError, match="A_KEY holds no key"):
        call(EndpointConfig(model="m", base_url="https://example.com/v1", api_key_env="A_KEY"))


def test_a_provider_that_limits_our_rate_delays_a_start_by_seconds_only() -> None:
    with in_thread(FakeLLM(lambda _: Status(429, retry_after=20))) as fake:
        clock = time.monotonic()
        found = call(EndpointConfig(model="m", base_url=fake.base_url))
        assert time.monotonic() - clock < 20
    assert "limits our rate" in found.unchecked
    assert len(fake.asks) == 1


def test_the_start_waits_for_a_short_rate_limit_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A provider that asks for a second gets it, and the endpoint is checked after all."""
    answers = speaking("vllm", JUDGE)

    def limited(ask: Ask) -> Action:
        return Status(429, retry_after=1) if ask.number == 0 else answers(ask)  # type: ignore[return-value]

    with in_thread(FakeLLM(limited, pages=pages_of("vllm"))) as fake, caplog.at_level("WARNING", "arise"):
        found = call(EndpointConfig(model="judge-model", base_url=fake.base_url, price=PriceConfig(input=0, output=0)))
    assert found.structured == "grammar"
    assert not found.unchecked
    assert (
        "judge-model limits our rate: the first call waits 1.0 s and asks again, for at most 10 s in total"
        in caplog.text
    )


def test_a_server_that_is_busy_is_waited_for_and_not_called_dead(caplog: pytest.LogCaptureFixture) -> None:
    """A server with one worker answers no page while it writes another reply."""
    busy = FakeLLM(speaking("llama.cpp", JUDGE), pages=pages_of("llama.cpp"), page_delay=30)
    with in_thread(busy) as fake, caplog.at_level("WARNING", "arise"):
        free = PriceConfig(input=0, output=0)
        found = call(EndpointConfig(model="judge-model", base_url=fake.base_url, price=free))
    assert found.control is True
    assert found.window is None, "no page told it"
    assert "no answer within 4 s, it may be busy; waiting for its first reply, at most 120 s" in caplog.text


def test_findings_are_recorded_and_not_asked_for_twice() -> None:
    store = Store(":memory:")
    with in_thread(FakeLLM(speaking("vllm", JUDGE), pages=pages_of("vllm"))) as fake:
        endpoint = EndpointConfig(model="judge-model", base_url=fake.base_url)
        first = call(endpoint, store=store)
        assert call(endpoint, store=store) == first
        assert len(fake.asks) == 1
    assert first.structured == "grammar"
    assert first.window == 32_768


def test_a_server_that_silently_truncates_long_prompts_is_detected() -> None:
    with (
        in_thread(FakeLLM(speaking("ollama", JUDGE, window=2_048), pages={})) as fake,
        pytest.raises(AriseError, match="its window has 2,048 tokens") as refused,
    ):
        call(EndpointConfig(model="judge-model", base_url=fake.base_url))
    assert "context_tokens" not in refused.value.remedy, "a larger number would not make the server's window larger"


def test_a_window_that_the_configuration_limits_is_enlarged_there() -> None:
    with in_thread(FakeLLM(speaking("vllm", JUDGE), pages=pages_of("vllm"))) as fake:
        endpoint = EndpointConfig(model="judge-model", base_url=fake.base_url, context_tokens=2_048, max_tokens=512)
        with pytest.raises(AriseError, match="its window has 2,048 tokens") as refused:
            call(endpoint)
    assert refused.value.remedy.startswith("raise context_tokens in the endpoint's section to a window of 7,913")


def test_a_reasoning_model_gets_the_fields_it_takes() -> None:
    def picky(ask: Ask) -> Say | Status:
        if "max_tokens" in ask.body:
            message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return Status(400, body=json.dumps({"error": {"message": message}}))
        if "temperature" in ask.body:
            return Status(400, body=json.dumps({"error": {"message": "'temperature' does not support 0.0"}}))
        said = JUDGE(ask)
        assert isinstance(said, Say)
        return said

    with in_thread(FakeLLM(picky)) as fake:
        endpoint = EndpointConfig(model="o-something", base_url=fake.base_url)
        found = call(endpoint)
    used = found.applied(endpoint)
    assert found.left_out == ("max_tokens", "temperature")
    assert used.extra_body == {"max_tokens": None, "temperature": None, "max_completion_tokens": used.max_tokens}


def test_a_reply_that_is_cut_off_while_thinking_says_so() -> None:
    with (
        in_thread(FakeLLM(lambda _: Say("", finish="length"))) as fake,
        pytest.raises(AriseError, match="cut off at max_tokens = 64") as refused,
    ):
        call(EndpointConfig(model="m", base_url=fake.base_url, max_tokens=64))
    assert "max_tokens = 256" in refused.value.remedy


def test_usage_beyond_what_was_asked_for_is_usage() -> None:
    with in_thread(FakeLLM(lambda _: Say("ok", completion_tokens=500))) as fake:
        found = call(EndpointConfig(model="m", base_url=fake.base_url, max_tokens=64))
    assert found.usage is True


def test_without_usage_a_free_server_is_fine() -> None:
    with in_thread(FakeLLM(lambda _: Say("ok", usage=False))) as fake:
        price = PriceConfig(input=0.0, output=0.0)
        found = call(EndpointConfig(model="m", base_url=fake.base_url, price=price))
    assert found.usage is False
    assert found.control is None


@pytest.mark.parametrize("pairs", [1, 8, 64])
def test_the_least_window_of_a_run_is_the_least_that_judges_a_full_pool(pairs: int) -> None:
    """At this window a full pool leaves room for a trace; with 200 tokens less it would not."""
    needs = judge_needs(pairs, 500)

    def room(window: int) -> int:
        used = Served(window=window).applied(EndpointConfig(model="m"))
        return trace_room(used, 3.0, pairs * RUBRIC_CHARS)

    assert room(needs.least) >= LEAST_TRACE_CHARS > room(needs.least - 200)


def test_a_window_that_a_full_pool_outgrows_is_refused_with_the_pool_that_fits() -> None:
    """8,192 tokens judge a pool of nine; the tenth pair would make every call of the run refuse itself."""
    with in_thread(FakeLLM(speaking("vllm", JUDGE), pages=pages_of("vllm", 8_192))) as fake:
        endpoint = EndpointConfig(model="judge-model", base_url=fake.base_url, price=PriceConfig(input=0, output=0))
        with pytest.raises(AriseError, match=r"8,192 tokens, and a request of this command needs at least") as refused:
            call(endpoint, run_needs(Config()))
        assert "or keep the pool small: pool.max_pairs = 9" in refused.value.remedy
        small = Config.model_validate({"pool": {"max_pairs": 9}})
        assert call(endpoint, run_needs(small)).window == 8_192


def test_a_policy_needs_room_for_the_longest_task_it_will_be_given() -> None:
    limits = AgentConfig()
    assert agent_needs(limits).least == 256 + 64
    assert agent_needs(limits, opening_chars=6_000).least == 2_000 + 64
