"""Judge and reflector as a run's configuration chooses them."""

import asyncio
import json
from pathlib import Path

import pytest
import tomli_w

from arise.analyst import OfflineJudge
from arise.compose.judges import Judging, analyst_rubrics, judging
from arise.config import Config
from arise.config.file import load_config
from arise.errors import AriseError
from arise.llm.check.cases import read_cases
from arise.testing import FakeLLM, Say, Status, honest, in_order
from arise.types import Judgment, Pair, Pool, Skill, Verdict

CASES = read_cases()
POOL = Pool(tuple(Pair(rubric, Skill("")) for rubric in analyst_rubrics()), 1, 20)
FAKE = Config.model_validate({"judge": {"kind": "fake", "latency": 0.0}})


def judged(config: Config, folder: Path) -> list[Judgment]:
    async def run() -> list[Judgment]:
        async with judging(config, folder) as chosen:
            assert chosen.judge is not None
            assert chosen.reflector is not None
            return [await chosen.judge.judge(task, rollout, POOL) for task, rollout in CASES.rollouts]

    return asyncio.run(run())


def test_the_fake_judge_of_a_run_equals_the_analyst_and_is_asked_once(tmp_path: Path) -> None:
    first = judged(FAKE, tmp_path)
    offline = [asyncio.run(OfflineJudge().judge(task, rollout, POOL)) for task, rollout in CASES.rollouts]
    assert [dict(j.verdicts) for j in first] == [dict(j.verdicts) for j in offline]
    again = judged(FAKE, tmp_path)
    assert [dict(j.verdicts) for j in again] == [dict(j.verdicts) for j in first]
    events = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text("utf-8").splitlines()]
    calls = 2 * len(CASES.rollouts)
    assert [event["cached"] for event in events] == [False] * calls + [True] * calls, "a resume pays for nothing again"


def test_a_model_that_is_down_is_reported_and_costs_only_verdicts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> Judgment:
        async with FakeLLM(in_order([Say("ok"), Say("ok"), Status(503)])) as fake:
            calls = {"when_down": "task_only", "breaker_after": 2, "transport_attempts": 2}
            endpoint = {"model": "m", "base_url": fake.base_url}
            config = Config.model_validate({"judge": {"kind": "model", "endpoint": endpoint, "calls": calls}})
            async with judging(config, tmp_path) as chosen:
                assert chosen.judge is not None
                return await chosen.judge.judge(*CASES.rollouts[0], POOL)

    judgment = asyncio.run(run())
    assert judgment.verdicts == {}
    assert len(judgment.absent) == 20
    assert caplog.messages[0].startswith("judge.degraded: 2 failures in a row, last: HTTP 503")


def test_a_separate_reflector_and_a_budget(tmp_path: Path) -> None:
    async def run() -> None:
        async with FakeLLM(honest(lambda _rule, _ask: Verdict.PASS)) as fake:
            endpoint = {"model": "m", "base_url": fake.base_url}
            values = {
                "judge": {"kind": "model", "endpoint": endpoint},
                "reflector": {"kind": "model", "endpoint": endpoint | {"model": "n"}},
                "budget": {
                    "max_usd": 1.0,
                    "prices": {"m": {"input": 1.0, "output": 1.0}, "n": {"input": 1, "output": 1}},
                },
            }
            async with judging(Config.model_validate(values), tmp_path) as chosen:
                assert chosen.judge is not None
                assert chosen.budget is not None
                await chosen.judge.judge(*CASES.rollouts[0], POOL)
                assert [ask.model for ask in fake.asks] == ["m", "m", "n", "n", "m", "m"], "both were tried before"
                assert chosen.budget.spent_nano == 6 * 1_100_000

    asyncio.run(run())


def test_no_judge_at_all(tmp_path: Path) -> None:
    async def run() -> Judging:
        async with judging(Config.model_validate({"judge": {"kind": "none"}}), tmp_path) as chosen:
            return chosen

    assert asyncio.run(run()) == Judging()


def test_a_resolved_configuration_with_a_model_reads_back_equal(tmp_path: Path) -> None:
    values = {
        "judge": {"kind": "model", "endpoint": {"model": "m", "extra_body": {"top_k": 1}}, "allow_change": ["n"]},
        "reflector": {"kind": "model", "endpoint": {"model": "n"}},
        "budget": {"max_usd": 3.0, "prices": {"m": {"input": 1.0, "output": 2.0}}},
    }
    config = Config.model_validate(values)
    path = tmp_path / "config.toml"
    path.write_text(tomli_w.dumps(config.model_dump()), "utf-8")
    assert load_config(path) == config


def test_the_shipped_configuration_is_valid() -> None:
    path = Path(__file__).parents[3] / "configs/fake-judge.toml"
    assert load_config(path).judge.kind == "fake"


def test_an_endpoint_is_tried_once_in_a_run_and_its_key_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[int]:
        counts = []
        async with FakeLLM(honest(lambda _rule, _ask: Verdict.PASS)) as fake:
            endpoint = {"model": "m", "base_url": fake.base_url}
            config = Config.model_validate({"judge": {"kind": "model", "endpoint": endpoint}})
            for again in (False, False, True):
                async with judging(config, tmp_path, again=again):
                    counts.append(len(fake.asks))
        return counts

    assert asyncio.run(run()) == [2, 2, 4]
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    away = Config.model_validate({"judge": {"kind": "model", "endpoint": {"model": "m"}}})

    async def refused() -> None:
        async with judging(away, tmp_path):
            raise AssertionError("it has no key")

    with pytest.raises(AriseError, match="OPENAI_API_KEY holds no key"):
        asyncio.run(refused())
