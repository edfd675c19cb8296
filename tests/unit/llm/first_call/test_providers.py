"""The sections of docs/guides/judge-providers.md against a server of each kind: pasted as they are, they judge."""

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from arise.config import Config
from arise.config.llm import ModelJudge, PriceConfig
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.first_call.first_call import first_call
from arise.llm.first_call.needs import judge_needs
from arise.llm.first_call.served import Served
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.testing import DIALECTS, FakeLLM, honest, pages_of, speaking
from arise.types import Judgment, Verdict
from tests.unit.llm.builders import QUICK, TASK, pool, rollout

GUIDE = Path(__file__).parents[4] / "docs/guides/judge-providers.md"
SECTIONS = dict(re.findall(r'```toml title="([\w.]+)"\n(.*?)```', GUIDE.read_text("utf-8"), re.DOTALL))
FORMS = {"vllm": "grammar", "llama.cpp": "grammar", "ollama": "json_schema", "deepseek": "off"} | dict.fromkeys(
    ("openai", "gateway"), "json_schema"
)


async def judged(kind: str, **changes: Any) -> tuple[Served, list[Judgment], Store]:
    config = Config.model_validate(tomllib.loads(SECTIONS[kind]))
    assert isinstance(config.judge, ModelJudge)
    model = config.judge.endpoint.model
    script = speaking(kind, honest(lambda _rule, _ask: Verdict.PASS), key="k3y", model=model, **changes)
    async with FakeLLM(script, pages=pages_of(kind, changes.get("window", 32_768), model)) as fake:
        forms = {"structured": "json_schema"} if FORMS[kind] == "json_schema" else {}
        price = config.judge.endpoint.price or PriceConfig(input=0.2, output=0.8)
        changed = {"base_url": fake.base_url, "api_key_env": "A_KEY", "price": price} | forms
        endpoint = config.judge.endpoint.model_copy(update=changed)
        store = Store(":memory:")
        budget = Budget(store, config.budget)
        served = await first_call(endpoint, store, budget, "judge", judge_needs(20, 2_000))
        client = Client(served.applied(endpoint), QUICK, store, budget, purpose="judge")
        judge = LanguageModelJudge(client, ModelJudge(endpoint=served.applied(endpoint), calls=QUICK))
        found = [await judge.judge(TASK, rollout(f"sort {n}.csv"), pool(20)) for n in range(3)]
        await client.close()
        return served, found, store


def test_there_is_a_section_for_every_kind() -> None:
    assert set(SECTIONS) == set(DIALECTS)


@pytest.mark.parametrize("kind", list(DIALECTS))
def test_the_section_of_a_provider_judges(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "k3y")
    served, found, store = asyncio.run(judged(kind))
    assert served.structured == FORMS[kind]
    assert served.control is True
    assert served.usage
    assert all(len(judgment.verdicts) == 20 and judgment.diagnostic is not None for judgment in found)
    (total,) = store.totals()
    assert total.cached_tokens > 5_000, "the fixed part comes first and is the same in every call"


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "ollama", "gateway"])
def test_a_window_that_is_stated_is_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "k3y")
    served, _, _ = asyncio.run(judged(kind, window=16_384))
    assert served.window == 16_384
