"""What a run does with a judge of whose answers less than half are usable."""

from dataclasses import dataclass
from typing import Any, cast

import pytest

from arise.compose.judge_policy import JudgePolicy
from arise.llm.client.stops import AnswersUnusable
from arise.run.facts.judging import judge_note, unusable_text

GOOD = {"answers": 64.0, "answers_asked": 64.0}
BAD = {"answers": 4.0, "answers_asked": 64.0, "absent refused": 50.0, "absent weak": 10.0}


@dataclass(frozen=True)
class Row:
    number: int
    metrics: dict[str, float]


class Rows:
    """The iterations of a run."""

    def __init__(self, *metrics: dict[str, float]) -> None:
        self.rows = [Row(number, found) for number, found in enumerate(metrics, start=1)]

    def iterations(self) -> list[Row]:
        return self.rows

    def last_iteration(self) -> Row | None:
        return self.rows[-1] if self.rows else None


def policy(kind: str, *metrics: dict[str, float], start: int = 0) -> JudgePolicy:
    return JudgePolicy(cast(Any, Rows(*metrics)), kind, 2, start)


def test_a_bad_window_stops_the_run_with_the_reason() -> None:
    with pytest.raises(AnswersUnusable, match=r"only 6\.2 % .*100 refused, 20 weak.*arise doctor"):
        policy("stop", BAD, BAD)()
    assert policy("stop", GOOD, BAD)() == "", "more than half of the window is usable"
    assert policy("stop", BAD)() == "", "the window is not complete"
    assert policy("stop", BAD, BAD, start=2)() == "", "whoever resumes has mended the judge"


def test_task_only_withholds_until_a_window_is_usable_again() -> None:
    assert policy("task_only", BAD, BAD)()
    assert policy("task_only", BAD, BAD, GOOD, start=3)()
    assert not policy("task_only", BAD, BAD, GOOD, GOOD)()


def test_the_line_says_what_is_missing_only_if_something_is() -> None:
    assert judge_note(GOOD) == ""
    assert judge_note(BAD) == "  judge 4 of 64 usable (50 refused, 10 weak)"
    assert unusable_text([{}]) == "", "nothing was asked"
