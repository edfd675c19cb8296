from arise.baselines.response import response_credit
from arise.config.baselines import ResponseCredit
from arise.method.advantage import normalized
from arise.types import Pool
from tests.builders import a_group, a_task, close

LETTERS = {"a": "110n", "b": "10nn"}


def test_outcome_and_criteria_make_one_reward() -> None:
    found = response_credit(ResponseCredit())(a_group(a_task(), LETTERS, rewards=[1.0, 0.0, 1.0, 1.0]), Pool())
    assert found is not None
    # shares of criteria met: 1, 1/2, 0, and none applied to the last, whose reward is its outcome
    close(found.combined_J, normalized([1.0, 0.25, 0.5, 1.0]))
    close(found.task_J, normalized([1.0, 0.0, 1.0, 1.0]))
    close(found.rubric_J, [*normalized([1.0, 0.5, 0.0]), 0.0])


def test_the_outcomes_weight() -> None:
    group = a_group(a_task(), LETTERS, rewards=[0.0, 1.0, 1.0, 0.0])
    found = response_credit(ResponseCredit(outcome_weight=3.0))(group, Pool())
    assert found is not None
    close(found.combined_J, normalized([0.25, 0.875, 0.75, 0.0]))


def test_an_incomplete_group_is_dropped() -> None:
    assert response_credit(ResponseCredit())(a_group(a_task(), {"a": "10"}, rewards=[1.0, None]), Pool()) is None
