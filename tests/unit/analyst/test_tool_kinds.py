"""Tools that are no shell: browsers, patches, notebooks, records, and editors that show what they wrote."""

import pytest

from arise.analyst.acts import Op
from arise.analyst.detectors import find_all
from arise.analyst.toolcalls import acts_of_call
from arise.analyst.trace import read_trace
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn


def ops(name: str, **arguments: object) -> list[tuple[Op, str]]:
    return [(act.op, act.path) for act in acts_of_call(ToolCall(name, arguments))[1]]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("browser_navigate", {"url": "https://a.example/x"}, [(Op.READ, "https://a.example/x")]),
        ("browser_click", {"ref": "e3"}, [(Op.RUN, "")]),
        ("WebFetch", {"url": "https://a.example/"}, [(Op.READ, "https://a.example/")]),
        ("web_search", {"query": "x"}, [(Op.SEARCH, "")]),
        ("get_order_details", {"order_id": "W1"}, [(Op.READ, "order-details/W1")]),
        ("cancel_order", {"order_id": "W1"}, [(Op.DELETE, "order/W1"), (Op.READ, "order/W1")]),
        ("TodoWrite", {"todos": []}, []),
        ("think", {"thought": "hm"}, []),
        ("Read", {"file_path": "a.py"}, [(Op.READ, "a.py")]),
        ("create_file", {"path": "a.py"}, [(Op.WRITE, "a.py")]),
        ("submit", {}, [(Op.FINISH, "")]),
    ],
)
def test_tools_become_acts_by_their_name(name: str, arguments: dict[str, object], expected: list[object]) -> None:
    assert ops(name, **arguments) == expected


def test_a_patch_writes_the_files_it_names() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** End Patch"
    assert ops("apply_patch", input=patch) == [(Op.WRITE, "src/a.py"), (Op.WRITE, "b.md")]
    assert ops("patch", diff="--- a/c.py\n+++ b/c.py\n@@ -1 +1 @@\n") == [(Op.WRITE, "c.py")]


def test_code_for_an_interpreter_is_looked_through() -> None:
    found = ops("ipython", code="rows = open('in.csv').read()\nopen('out.csv', 'w').write(rows)\n")
    assert (Op.USE, "in.csv") in found
    assert (Op.WRITE, "out.csv") in found


def test_a_command_given_as_words_is_one_script() -> None:
    assert ops("shell", command=["bash", "-lc", "sort in.csv > out.csv"])[-1] == (Op.WRITE, "out.csv")
    assert ops("shell", command=["cat", "a b.txt"]) == [(Op.READ, "a b.txt")]


def misses(shown: str) -> set[str]:
    edit = ToolCall("edit", {"path": "report.md"}, "c1")
    turns = (
        Turn("", (edit,), (Observation(shown, call_id="c1"),)),
        Turn("", (ToolCall("submit", {}, "c2"),), ()),
    )
    task = Task("t", "Write the summary to report.md. It must have 3 lines.")
    found = find_all(read_trace(task, Trajectory("x", "t", turns, StopReason.FINISHED)))
    return {pattern for pattern, finding in found.items() if not finding.passed}


def test_an_editor_that_shows_the_file_is_a_look_at_it() -> None:
    assert "P02" in misses("File updated.")
    assert "P02" not in misses("[File: report.md (2 lines total)]\n1:first\n2:second\n")


def test_an_answer_to_another_call_is_not_taken_by_its_place() -> None:
    calls = (ToolCall("bash", {"command": "cat a.txt"}, "c1"),)
    turns = (Turn("", calls, (Observation("error: failed", call_id="user"),)), Turn("Done.", (), ()))
    trace = read_trace(Task("t", "Look."), Trajectory("x", "t", turns, StopReason.FINISHED))
    assert not trace.calls[0].answer.failed


def test_a_script_that_reproduces_a_failure_is_no_edit() -> None:
    def turn(command: str, output: str) -> Turn:
        return Turn("", (ToolCall("bash", {"command": command}),), (Observation(output),))

    work = (
        turn("echo 'import app' > reproduce.py", ""),
        turn("python reproduce.py", "Traceback (most recent call last)"),
        turn("sed -i s/a/b/ app.py", ""),
        turn("python reproduce.py", "ok"),
    )
    task = Task("t", "app.py crashes with a bug. Fix it.")
    found = find_all(read_trace(task, Trajectory("x", "t", work, StopReason.FINISHED)))
    assert found["P09"].passed
    assert all(finding.turn <= len(work) for finding in found.values())
