import pytest

from arise.method.feedback import ERROR_CHARS, TURN_CHARS, excerpt, feedback, opened
from arise.types import Observation, StopReason, ToolCall, Trajectory, Turn

HALF = TURN_CHARS // 2


def told(*turns: Turn, task_id: str = "") -> Trajectory:
    return Trajectory("t0", task_id, turns, StopReason.FINISHED)


def said(text: str, task_id: str = "") -> str:
    """The excerpt's form of what an agent said."""
    (turn,) = excerpt(told(Turn(text), task_id=task_id))
    return turn.action


def seen(*texts: str) -> str:
    """The excerpt's form of what an agent saw in one turn."""
    (turn,) = excerpt(told(Turn("look", (), tuple(Observation(text) for text in texts))))
    return turn.observation


def test_calls_arguments_and_observations_are_joined_on_one_line() -> None:
    calls = (ToolCall("edit", {"path": "a.txt", "text": "new"}), ToolCall("bash", {"command": "ls"}))
    (turn,) = excerpt(told(Turn("I edit.", calls, (Observation("done"), Observation("a.txt\nb.txt")))))
    assert turn.action == "edit: a.txt new; bash: ls"
    assert turn.observation == "done a.txt b.txt"
    assert not turn.error


def test_the_excerpt_of_a_short_trajectory_has_all_its_turns() -> None:
    assert [turn.turn for turn in excerpt(told(Turn("one")))] == [1]
    assert [turn.turn for turn in excerpt(told(Turn("one"), Turn("two")))] == [1, 2]
    assert [turn.turn for turn in excerpt(told(Turn("one"), Turn("two"), Turn("three")))] == [2, 3]


def test_a_text_over_the_limit_keeps_its_two_ends() -> None:
    assert said("a" * TURN_CHARS) == "a" * TURN_CHARS
    assert said("a" * HALF + "bc" + "d" * (HALF - 1)) == "a" * HALF + " [cut] " + "c" + "d" * (HALF - 1)


def test_a_very_long_text_is_cut_before_it_is_read() -> None:
    ends = 4 * TURN_CHARS
    whole = "a" * ends + " " * ends
    assert said(whole) == said("a" * ends), "whole: the spaces vanish"
    head, tail = "a" * HALF, "c" * HALF
    between = " " * (ends - HALF)
    assert seen(f"{head}{between}{'b' * 10}{between}{tail}") == f"{head} [cut] {tail}"
    assert seen(f"x{between}{' ' * (HALF - 1)}middle{' ' * (HALF - 1)}{between}y") == "x [cut] y"
    assert seen(f"x{between}{' ' * (HALF - 2)}kmiddlel{' ' * (HALF - 2)}{between}y") == "x k [cut] l y"


@pytest.mark.parametrize(
    ("task_id", "text", "plain"),
    [
        ("csv-7", "cat /work/csv-7/a.txt csv-7.", "cat /work/[task]/a.txt [task]."),
        ("csv1", "mycsv1x csv1", "my[task]x [task]"),
        ("abc", "(abc): abcde", "([task]): abcde"),
        ("a", "a [a] 'a' \"a\", a; cat", "[task] [[task]] '[task]' \"[task]\", [task]; cat"),
        ("X", "X XX", "[task] XX"),
        ("", "nothing to hide", "nothing to hide"),
    ],
)
def test_the_id_of_the_task_is_removed(task_id: str, text: str, plain: str) -> None:
    assert said(text, task_id) == plain


def test_only_the_end_of_the_last_line_of_an_error_is_read() -> None:
    def message(text: str) -> tuple[str, ...]:
        return feedback(told(Turn("try", (), (Observation(text, error=True),)))).errors

    assert message("first\nlast line\n") == ("last line",)
    far = "k" + " " * (4 * ERROR_CHARS - 3) + "end"
    assert message(far) == ("end",)
    assert message(far.replace(" ", "", 1)) == ("k end",)


def test_an_opened_skill_is_one_that_a_call_names() -> None:
    trajectory = told(
        Turn("", (ToolCall("read", {"path": "skills/csv/SKILL.md"}), ToolCall("bash", {"command": "ls"})))
    )
    assert opened(trajectory, ("csv", "pdf")) == ("csv",)
    assert opened(told(Turn("csv")), ("csv",)) == ()
