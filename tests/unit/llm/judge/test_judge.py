"""The judge: batches, re-asks for what is missing, diagnostics of the whole pool, absences with reasons."""

import asyncio
import json
from typing import Any

from arise.config.llm import EndpointConfig, ModelJudge
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.testing import Action, Ask, FakeLLM, Say, Script, always, honest
from arise.types import Judgment, Pool, Rollout, StopReason, Trajectory, Verdict
from tests.unit.llm.builders import QUICK, TASK, client, judge, pool, rollout

GAP = {
    "kind": "failure_gap",
    "issue_tag": "error_response",
    "text": "When a call fails, the agent failed to read the message, observable via an equal next call.",
    "observable_signals": ["equal next call"],
    "related_rubric_ids": [],
}


def by_number(rule: str, _ask: Ask) -> Verdict:
    number = int(rule.split("habit ")[1].split()[0])
    return [Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE][number % 3]


def judged(
    script: Script, of: Pool, per_call: int = 16, given: Rollout | None = None, reasons: bool = False
) -> tuple[Judgment, FakeLLM]:
    async def run() -> tuple[Judgment, FakeLLM]:
        async with FakeLLM(script) as fake:
            asks = client(fake)
            result = await judge(fake, asks, per_call=per_call, reasons=reasons).judge(TASK, given or rollout(), of)
            await asks.close()
        return result, fake

    return asyncio.run(run())


def test_verdicts_come_back_under_their_own_ids() -> None:
    judgment, fake = judged(honest(by_number), pool(6))
    assert judgment.verdicts == {f"r00{i}": by_number(f"habit {i} ", fake.asks[0]) for i in range(1, 7)}
    assert judgment.absent == {}
    assert judgment.diagnostic is not None
    assert judgment.diagnostic.covered_by_active_rubrics
    assert judgment.judge.startswith("judge-1/")
    assert len(fake.asks) == 1


def test_batches_and_one_diagnostics_request_that_sees_the_whole_pool() -> None:
    judgment, fake = judged(honest(by_number), pool(10), per_call=4)
    assert len(judgment.verdicts) == 10
    assert len(fake.asks) == 3
    with_diagnostics = [ask for ask in fake.asks if "diagnostics_schema" in ask.data]
    assert len(with_diagnostics) == 1
    data = with_diagnostics[0].data
    assert len(data["rubrics"]) == 4 + 2
    assert len(data["rest_of_pool"]) == 6
    assert data["rubric_count_plus_one"] == 7
    others = [ask for ask in fake.asks if ask not in with_diagnostics]
    assert all("Issue tags" not in ask.system for ask in others)


def test_the_format_shown_is_the_format_asked_for() -> None:
    _, fake = judged(honest(by_number), pool(10), per_call=4)
    for ask in fake.asks:
        example = ask.system.partition("## Format example")[2].partition("##")[0]
        lines = [json.loads(line) for line in example.splitlines() if line.startswith("{")]
        wanted = "diagnostics_schema" in ask.data
        verdict = {"rubric_id", "applicable", "verdict"}
        assert [set(line) for line in lines] == [verdict, verdict, *[{"diagnostics"}] * wanted]
        assert ("write none" in ask.system) is not wanted


def test_related_rubrics_get_their_real_ids_back() -> None:
    def script(ask: Ask) -> Action:
        ids = [rubric["rubric_id"] for rubric in ask.data["rubrics"]]
        gap = GAP | {"related_rubric_ids": ids}
        body = {"uncovered_issues": [gap], "covered_by_active_rubrics": False}
        said = honest(by_number, body)(ask)
        assert isinstance(said, Say)
        return said

    judgment, _ = judged(script, pool(2))
    assert judgment.diagnostic is not None
    assert set(judgment.diagnostic.uncovered_issues[0].related_rubric_ids) == {"r001", "r002"}


def test_an_empty_pool_gets_the_initial_analysis() -> None:
    body = {"uncovered_issues": [GAP]}
    judgment, fake = judged(honest(by_number, body), Pool())
    assert judgment.verdicts == {}
    assert judgment.diagnostic is not None
    assert not judgment.diagnostic.covered_by_active_rubrics
    assert len(judgment.diagnostic.uncovered_issues) == 1
    assert "rubrics" not in fake.asks[0].data


def lossy(first: int) -> Script:
    """Leaves out lines of rubrics in the first replies."""

    def answer(ask: Ask) -> Any:
        said = honest(by_number)(ask)
        assert isinstance(said, Say)
        lines = said.text.split("\n")
        if ask.number < first:
            (lost,) = [r["rubric_id"] for r in ask.data["rubrics"] if "habit 2 " in r["rule_text"]]
            keep = [line for line in lines if lost not in line and "diagnostics" not in line]
            return Say("\n".join(keep))
        return said

    return answer


def test_what_is_missing_is_asked_for_again_in_a_smaller_request() -> None:
    judgment, fake = judged(lossy(1), pool(5))
    assert len(judgment.verdicts) == 5
    assert judgment.diagnostic is not None
    assert [len(ask.data["rubrics"]) for ask in fake.asks] == [7, 3]


def test_after_two_reasks_an_absence_stays_an_absence() -> None:
    judgment, fake = judged(lossy(99), pool(5))
    assert set(judgment.absent) == {"r002"}
    assert judgment.absent["r002"] == "no line about this rubric"
    assert judgment.diagnostic is None
    assert judgment.diagnostic_absent == "no diagnostics line"
    assert len(judgment.verdicts) == 4
    assert len(fake.asks) == 3


def test_without_its_control_questions_a_reply_settles_nothing() -> None:
    def script(ask: Ask) -> Action:
        rubrics = [r["rubric_id"] for r in ask.data["rubrics"] if "habit" in r["rule_text"]]
        return Say("\n".join(json.dumps({"rubric_id": i, "applicable": True, "verdict": "pass"}) for i in rubrics))

    judgment, _ = judged(script, pool(2))
    assert judgment.verdicts == {}
    assert all(reason.startswith("control question") for reason in judgment.absent.values())


def test_garbage_is_an_absence_for_every_rubric() -> None:
    for text in ("", "I think it is fine.", "```json\n[]\n```", '{"error": "overloaded"}', "\ufeff", "null", "\ud83d"):
        judgment, _ = judged(always(text), pool(3))
        assert judgment.verdicts == {}
        assert set(judgment.absent) == {"r001", "r002", "r003"}
        assert judgment.diagnostic is None


def test_a_rollout_lost_to_a_fault_is_not_judged() -> None:
    lost = Rollout(Trajectory("t", TASK.id, (), StopReason.TIME_LIMIT), None, fault="sandbox: gone")
    judgment, fake = judged(always(""), pool(2), given=lost)
    assert judgment.absent["r001"] == "not judged: sandbox: gone"
    assert fake.asks == []


def test_an_empty_trajectory_swaps_the_control_answers() -> None:
    empty = Rollout(Trajectory("t", TASK.id, (), StopReason.FINISHED), 0.0, False)
    judgment, _ = judged(honest(by_number), pool(3), given=empty)
    assert len(judgment.verdicts) == 3


def test_a_context_that_is_too_small_is_a_refusal() -> None:
    async def run() -> Judgment:
        async with FakeLLM(always("")) as fake:
            endpoint = EndpointConfig(model="tiny", base_url=fake.base_url, context_tokens=4096, max_tokens=1024)
            settings = ModelJudge(endpoint=endpoint, calls=QUICK)
            return await LanguageModelJudge(client(fake), settings).judge(TASK, rollout(), pool(2))

    judgment = asyncio.run(run())
    assert judgment.absent["r001"].startswith("refused: the context leaves")


def test_what_was_cut_is_in_the_notes() -> None:
    judgment, fake = judged(honest(by_number), pool(1), given=rollout("x" * 2_000_000))
    assert "characters were cut" in judgment.notes[0]
    assert fake.asks[0].data["sample_result"]["cut"]


def test_events_carry_the_hash_of_the_prompt_and_the_cost() -> None:
    events: list[tuple[str, Any]] = []

    async def run() -> None:
        store = Store()
        async with FakeLLM(honest(by_number)) as fake:
            for _ in range(2):
                asks = client(fake, store=store)
                referee = judge(fake, asks, observe=lambda name, fields: events.append((name, fields)))
                await referee.judge(TASK, rollout(), pool(2))
                await asks.close()

    asyncio.run(run())
    replies = [fields for name, fields in events if name == "judge.reply"]
    assert [reply["cached"] for reply in replies] == [False, True]
    assert all(len(reply["template_hash"]) == 16 for reply in replies)
    assert replies[0]["prompt_hash"] == replies[1]["prompt_hash"]
