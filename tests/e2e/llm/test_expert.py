"""The whole path over HTTP: an expert behind the prompts gives what the offline analyst gives directly."""

import asyncio
from dataclasses import replace

from arise.analyst.catalogue import wordings
from arise.analyst.judge import OfflineJudge
from arise.analyst.reflector import OfflineReflector, first_skill
from arise.llm.check.cases import read_cases
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.reflection.reflector import LanguageModelReflector
from arise.method.evidence import for_generation, records_of
from arise.method.lifecycle import refined
from arise.ports import Judge
from arise.run.calls import Store
from arise.testing import Expert, FakeLLM
from arise.text.rules import item_problem, proposal_problems, skill_problems
from arise.types import (
    DiagnosticItem,
    DiagnosticKind,
    GenerationRecord,
    Group,
    Pair,
    Pool,
    Proposal,
    RefinementRecord,
    Rubric,
    Skill,
)
from tests.unit.llm.builders import PATIENT, QUICK, client, judge, reflector_settings

CASES = read_cases()


def expert() -> Expert:
    return Expert(OfflineJudge(), OfflineReflector(), CASES.pool.rubrics)


async def judged_by(referee: Judge, pool: Pool) -> list[Group]:
    groups = []
    for task, rollout in CASES.rollouts:
        judgment = await referee.judge(task, rollout, pool)
        groups.append(Group(task, (replace(rollout, judgment=judgment),), 1))
    return groups


def test_verdicts_and_diagnostics_equal_the_analysts() -> None:
    async def run() -> tuple[list[Group], list[Group], int]:
        async with FakeLLM(expert()) as fake:
            asks = client(fake, PATIENT)
            groups = await judged_by(judge(fake, asks, per_call=2), CASES.pool)
            await asks.close()
        return groups, await judged_by(OfflineJudge(), CASES.pool), len(fake.asks)

    over_http, directly, requests = asyncio.run(run())
    assert requests == 2 * len(CASES.rollouts)
    for one, other in zip(over_http, directly, strict=True):
        a, b = one.rollouts[0].judgment, other.rollouts[0].judgment
        assert a is not None
        assert b is not None
        assert dict(a.verdicts) == dict(b.verdicts)
        assert a.absent == {}
        assert a.diagnostic is not None
        assert b.diagnostic is not None
        assert [i.text for i in a.diagnostic.uncovered_issues] == [i.text for i in b.diagnostic.uncovered_issues]


def test_a_pool_grows_from_an_empty_one_through_prompts_alone() -> None:
    """Bootstrap analysis, generation, judging with the new pairs and a rewrite, all by prompt and parser."""

    async def run() -> None:
        async with FakeLLM(Expert(OfflineJudge(), OfflineReflector())) as fake:
            asks = client(fake)
            settings = reflector_settings(fake)
            store = Store()
            reflects = Client(settings.endpoint, QUICK, store, Budget(store), purpose="reflection")
            reflector = LanguageModelReflector(reflects, settings)
            records = records_of(0, await judged_by(judge(fake, asks), Pool()))
            chosen = for_generation(records, seed=0, update=1, round_number=0)
            reflection = await reflector.propose(chosen, (), 8, 0)
            direct = await OfflineReflector().propose(chosen, (), 8, 0)
            assert reflection.proposals == direct.proposals
            assert len(reflection.proposals) >= 2
            pool = Pool(
                tuple(born(i, p) for i, p in enumerate(reflection.proposals, start=1)), 1, len(direct.proposals)
            )
            groups = await judged_by(judge(fake, asks), pool)
            verdicts = [dict(g.rollouts[0].judgment.verdicts) for g in groups if g.rollouts[0].judgment]
            assert all(len(found) == len(pool) for found in verdicts)
            again = await reflector.propose(chosen, pool.pairs, 8, 1)
            assert again.proposals == ()
            await asks.close()
            await reflects.close()

    asyncio.run(run())


def born(number: int, p: Proposal) -> Pair:
    rubric = Rubric(
        f"r{number:03d}", p.criteria_text, p.issue_tag, p.capability, p.applicability_condition, p.rule_text
    )
    return Pair(rubric, Skill(p.skill_text))


def test_every_wording_of_the_analyst_passes_the_rules_of_the_wire() -> None:
    for wording in wordings().values():
        for miss in wording.misses:
            proposal = Proposal(
                wording.criterion, wording.pattern.issue_tag, wording.pattern.capability, wording.applies, wording.rule,
                first_skill(wording, miss), ("e1",), ("e2",),
            )  # fmt: skip
            assert proposal_problems(proposal, {"e1", "e2"}) == [], wording.pattern.id
            signal = wording.misses[miss].signal
            assert item_problem(f"When {wording.condition}, failed to {wording.behaviour}, via {signal}.") == ""


def test_every_rewrite_of_the_analyst_passes_the_skill_linter() -> None:
    async def run() -> None:
        text = "When it fails, the agent failed to look, observable via the next call."
        issue = DiagnosticItem(DiagnosticKind.FAILURE_GAP, "error_response", text, ("next call",))
        view = GenerationRecord("e0001-00-00", 1, 1, (), "", (issue,), (), (), (), 8, 1)
        for w in wordings().values():
            rubric = Rubric("r001", w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)
            skill, written = Skill("Look first.", True), 0
            while rewrite := (
                await OfflineReflector().rewrite(Pair(rubric, skill), [RefinementRecord(view, None)])
            ).text:
                assert skill_problems(rewrite) == [], w.pattern.id
                skill, written = refined(skill, rewrite), written + 1
            assert written >= 3

    asyncio.run(run())
