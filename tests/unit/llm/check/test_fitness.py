"""The advice of a judge check for judges whose quality is known: it must follow from what was measured."""

import asyncio
import random
from collections.abc import Callable

import pytest

from arise.llm.check.cases import read_cases
from arise.llm.check.check import JudgeCheck, check_judge
from arise.llm.check.confusion import Confusion, confusion
from arise.llm.check.fitness import Advice
from arise.types import Judgment, Pool, Rollout, Task, Verdict

CASES = read_cases()
PASS, FAIL, NA = Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE
Say = Callable[[Verdict, random.Random], Verdict | None]


class Scripted:
    """A judge that knows the labels and says what a rule makes of them; None is an absence."""

    identity = "scripted"

    def __init__(self, say: Say, seed: int) -> None:
        self._say, self._rng = say, random.Random(seed)

    async def judge(self, _task: Task, rollout: Rollout, pool: Pool) -> Judgment:
        given: dict[str, Verdict] = {}
        for rubric in pool.rubrics:
            known = CASES.labels.get((rollout.trajectory.id, rubric.id), PASS)
            verdict = self._say(known, self._rng)
            given |= {rubric.id: verdict} if verdict else {}
        absent = {rubric.id: "empty reply" for rubric in pool.rubrics if rubric.id not in given}
        return Judgment(pool.version, self.identity, given, absent)


def checked(say: Say, seed: int = 0, *, labels: bool = True, limit: int = 100, repeats: int = 3) -> JudgeCheck:
    return asyncio.run(
        check_judge(
            lambda repeat: Scripted(say, 100 * seed + repeat),
            CASES.rollouts[:limit],
            CASES.pool,
            repeats,
            labels=CASES.labels if labels else None,
            reference=None if labels else Scripted(lambda known, _: known, 0),
            votes=3,
        )
    )


def noisy(share: float) -> Say:
    """Another verdict, drawn anew in each repeat, in this share of cases."""
    return lambda known, rng: (
        rng.choice([v for v in (PASS, FAIL, NA) if v is not known]) if rng.random() < share else known
    )


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("verdict", [PASS, FAIL, NA])
def test_a_constant_judge_is_named_and_not_fit(verdict: Verdict, labels: bool) -> None:
    found = checked(lambda _known, _rng: verdict, labels=labels).fitness
    assert found.advice is Advice.UNFIT
    assert found.doubts == (f"it says {verdict.value.replace('_', ' ')} to everything",)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_a_random_judge_is_not_fit(seed: int, labels: bool) -> None:
    assert checked(lambda _known, rng: rng.choice([PASS, FAIL]), seed, labels=labels).fitness.advice is Advice.UNFIT
    assert checked(lambda _known, rng: rng.choice([PASS, FAIL, NA]), seed, labels=labels).fitness.advice is Advice.UNFIT


@pytest.mark.parametrize("labels", [True, False])
def test_an_inverted_judge_is_told_that_it_is(labels: bool) -> None:
    found = checked(lambda known, _: {PASS: FAIL, FAIL: PASS}.get(known, NA), labels=labels).fitness
    assert found.advice is Advice.UNFIT
    assert "are pass and fail swapped?" in found.doubts[0]


@pytest.mark.parametrize("labels", [True, False])
def test_a_perfect_judge_is_fit(labels: bool) -> None:
    report = checked(lambda known, _: known, labels=labels)
    assert (report.fitness.advice, report.fitness.doubts) == (Advice.FIT, ())
    known = report.known_by
    assert known.kappa == known.informedness == known.balanced == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_a_slightly_noisy_judge_is_fit_and_a_noisier_one_needs_a_second_vote(seed: int) -> None:
    assert checked(noisy(0.02), seed).fitness.advice is Advice.FIT
    report = checked(noisy(0.15), seed)
    assert report.fitness.advice is Advice.CONFIRM
    one, two, three = report.votes
    assert two.valid < three.valid <= one.valid == 1.0
    assert (one.known.balanced or 0) < (three.known.balanced or 0) < 1.01
    assert (one.known.balanced or 0) < (two.known.balanced or 0)


def test_a_judge_that_overlooks_fails_is_not_fit_however_often_it_agrees() -> None:
    """Steady errors on one kind of answer: votes do not remove them, and agreement with the labels hides them."""
    report = checked(lambda known, _: PASS if known is FAIL else known)
    assert report.fitness.advice is Advice.UNFIT
    assert report.fitness.doubts[0] == "against the labels it is no better than chance"

    half = iter(range(10**6))
    report = checked(lambda known, _: PASS if known is FAIL and next(half) % 3 == 0 else known, repeats=1)
    assert report.with_labels is not None
    assert (report.with_labels.agreement or 0) > 0.85
    assert report.fitness.advice is Advice.UNFIT
    assert report.fitness.doubts == ("it finds 65.5 % of the fails, 80.0 % are needed",)


def test_votes_cannot_replace_missing_verdicts() -> None:
    report = checked(lambda known, rng: None if rng.random() < 0.3 else known)
    assert report.fitness.advice is Advice.UNFIT
    assert "of verdicts are valid, 95.0 % are needed" in report.fitness.doubts[0]


def test_too_few_known_answers_tell_nothing() -> None:
    found = checked(lambda known, _: known, limit=2).fitness
    assert found.advice is Advice.UNKNOWN
    assert found.doubts == (
        "3 fails are known from the labels, 5 are needed",
        "3 passes are known from the labels, 5 are needed",
    )


def test_nothing_to_compare_with_tells_nothing_but_names_a_constant() -> None:
    report = asyncio.run(
        check_judge(lambda repeat: Scripted(lambda _k, _r: PASS, repeat), CASES.rollouts, CASES.pool, 2)
    )
    assert report.fitness.advice is Advice.UNKNOWN
    assert report.fitness.doubts[0] == "it says pass to everything"


def test_kappa_and_recalls_of_a_table_computed_by_hand() -> None:
    known = {(str(i), "r"): FAIL if i < 10 else PASS for i in range(30)}
    given = {key: FAIL if int(key[0]) in (*range(8), 10, 11) else PASS for key in known}
    table = confusion([given, given], known)
    assert table.recall(FAIL) == 0.8
    assert table.recall(PASS) == 0.9
    assert table.given(FAIL, FAIL) == (8, 10), "an answer counts once, however often it is repeated"
    assert table.balanced == pytest.approx(0.85)
    assert table.informedness == pytest.approx(0.7)
    chance = (10 * 10 + 20 * 20) / 30**2
    assert table.kappa == pytest.approx((26 / 30 - chance) / (1 - chance))
    assert confusion([{}], known) == Confusion({})
    assert Confusion({}).kappa is None


def test_shipped_cases_have_enough_answers_of_each_kind() -> None:
    counts = {verdict: sum(v is verdict for v in CASES.labels.values()) for verdict in (PASS, FAIL, NA)}
    assert counts[PASS] >= 25
    assert counts[FAIL] >= 25
    assert counts[NA] >= 10
