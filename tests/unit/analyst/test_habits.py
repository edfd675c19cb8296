"""Each habit is seen where it is, and not where it is not."""

import pytest

from arise.analyst.habits import HABITS, Scene, find_habits, habit_texts
from arise.analyst.trace import read_trace
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn


def say(text: str, *seen: str) -> Turn:
    return Turn(text, (), tuple(Observation(reply, call_id="user") for reply in seen))


def act(name: str, answer: str, error: bool = False, **arguments: object) -> Turn:
    return Turn("", (ToolCall(name, arguments, "c"),), (Observation(answer, error, call_id="c"),))


def sh(command: str, answer: str = "ok", error: bool = False) -> Turn:
    return act("bash", answer, error, command=command)


def found(name: str, *turns: Turn, stop: StopReason = StopReason.FINISHED, given: str = "") -> bool | None:
    """Whether a habit is present; None without an opportunity."""
    task = Task("t", "Fix the bug.")
    trajectory = Trajectory("a", "t", turns, stop)
    finding = find_habits(Scene(task, trajectory, read_trace(task, trajectory), given)).get(name)
    return None if finding is None else finding.present


LOOK, EDIT = sh("ls", "a.py"), act("edit", "edited", path="a.py", old="x", new="y")
CANCEL = act("cancel_order", "cancelled", order_id="W1234")
CASES = {
    "H01": ([LOOK, sh("cat b", "no"), sh("cat b", "no"), sh("cat b", "no")], [LOOK, LOOK, EDIT, LOOK, sh("pytest")]),
    "H02": ([sh("make", "error: no rule", True)], [sh("make", "error: no rule", True), say("The build still fails.")]),
    "H04": ([say("ls", "Your last action could not be parsed. Give exactly one action.")], [say("ls", "Thank you.")]),
    "H05": (
        [act("edit", "No replacement was performed, the text did not appear verbatim.", True, path="a.py")],
        [EDIT],
    ),
    "H06": ([sh("pytest"), EDIT], [EDIT, sh("pytest")]),
    "H07": ([sh(f"run {n}", "error: bad", True) for n in range(4)], [LOOK, LOOK, LOOK, sh("run", "error: bad", True)]),
    "H08": ([sh(f"run {n}", "error: command timed out after 120 s", True) for n in (1, 2)], [sh("run", "ok")]),
    "H09": ([sh("cat tests/test_a.py"), sh("sed -i s/1/2/ tests/test_a.py")], [sh("sed -i s/1/2/ a.py")]),
    "H10": ([say("The price is not listed, so let's assume it is 20.")], [say("The page says 20.")]),
    "H11": ([say("I am unable to find it.")], [say("It is 42.")]),
    "H12": ([say("Shall I also write the report?")], [say("The report is written.")]),
    "H13": (
        [act("get_order", "{}", order_id="W1234")],
        [say("Which?", "W1234"), act("get_order", "{}", order_id="W1234")],
    ),
    "H14": ([say("Hello.", "Cancel my order W1234."), CANCEL], [say("Cancel W1234?", "Yes, please."), CANCEL]),
}


LISTED, OPENED, SEARCHED = sh("ls", "a.py ports.yaml"), sh("cat ports.yaml", "80"), sh("grep -rn 80", "ports.yaml: 80")
CODE = sh("cat a.py", "def read_rows():")
ASSUMED = {
    "a file that was listed and never opened": ([LISTED, say("I'll assume ports.yaml says 80.")], True),
    "a file that was opened": ([OPENED, say("Let's assume ports.yaml is right.")], False),
    "a file that a search showed": ([SEARCHED, say("I assume ports.yaml is used.")], False),
    "a name in code that nothing showed": ([LOOK, say("I assume `read_rows` returns a list of rows.")], True),
    "a name in code that a result showed": ([CODE, say("I assume `read_rows()` is slow.")], False),
    "a name looked up later": ([LOOK, say("Assuming a.read_rows exists."), sh("grep read_rows a.py")], False),
    "reasoning about code": ([LOOK, say("This is right (assuming T can represent every case).")], False),
    "a plan": ([LOOK, say("Let's assume I should update the test: it asserts the wrong thing.")], False),
    "data for a test": ([LOOK, say("I write a script with sample data to reproduce the bug.")], False),
    "a condition of a later sentence": ([LOOK, say("Suppose x is 5. Then `never_read` is called.")], False),
    "a number": ([LOOK, say("If we assume `2005` as the base, it is right.")], False),
    "an address": ([LOOK, say("I assume it is as on https://example.org/notes.html says.")], False),
    "words of the issue": ([LOOK, say('The issue says "I assume read_rows is wrong" and shows no code.')], False),
    "invented data where there is no shell": ([say("I use simulated data for the prices.")], True),
}


@pytest.mark.parametrize("name", ASSUMED)
def test_an_assumption_in_a_shell_must_name_what_was_never_looked_at(name: str) -> None:
    turns, present = ASSUMED[name]
    assert found("H10", *turns) is present


def test_an_assumption_about_what_the_task_names_is_none() -> None:
    task = Task("t", "Use parse_rows of a.py.")
    trajectory = Trajectory("a", "t", (LOOK, say("I assume parse_rows works.")), StopReason.FINISHED)
    assert not find_habits(Scene(task, trajectory, read_trace(task, trajectory)))["H10"].present


@pytest.mark.parametrize(
    ("text", "present"),
    [
        ("It is cancelled. Is there anything else I can help you with?", False),
        ("It is cancelled. Let me know if you have any other questions.", False),
        ("It is cancelled.\n\nIf you have any questions, just ask!", False),
        ("Shall I cancel it? Is there anything else I can help you with?", True),
        ("Would you like me to proceed?", True),
    ],
)
def test_a_polite_last_sentence_is_no_question(text: str, present: bool) -> None:
    assert found("H12", say(text)) is present


def test_handing_over_changes_no_record() -> None:
    transfer = act("transfer_to_human_agents", "done", summary="wants a refund")
    assert found("H14", say("Hello.", "I want a refund."), transfer) is None


@pytest.mark.parametrize("name", CASES)
def test_a_habit_is_seen_where_it_is_and_only_there(name: str) -> None:
    shown, clean = CASES[name]
    assert found(name, *shown) is True
    assert found(name, *clean) is False


def test_a_limit_of_turns_is_seen_and_a_time_limit_left_to_triage() -> None:
    assert found("H03", LOOK, stop=StopReason.TURN_LIMIT) is True
    assert found("H03", LOOK) is False
    assert found("H03", LOOK, stop=StopReason.TIME_LIMIT) is None


def test_an_identifier_that_the_system_prompt_gave_is_known() -> None:
    assert found("H13", act("get_order", "{}", order_id="W1234"), given="The customer's order is W1234.") is False


def test_every_habit_has_its_texts() -> None:
    assert set(habit_texts()) == set(HABITS)
    assert all(text.misses and len(text.skill) >= 80 for text in habit_texts().values())
