"""Reading whole trajectories: answers, files, roles in the instruction, and traces that no one should have written."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.analyst.played import play, task

from arise.analyst.acts import Op
from arise.analyst.answers import listed_files, read_answer
from arise.analyst.brief import read_brief
from arise.analyst.detectors import find_all
from arise.analyst.trace import read_trace
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn

STEPS = [
    "cat f.csv => a",
    "ls => " + " ".join(f"f{i}.csv" for i in range(50)),
    "conv *.csv => wrote x.csv",
    "conv a.csv => !error: invalid",
    "cp a.csv b.csv",
    "./check a.csv => !FAIL",
    "jqx => !jqx: command not found",
    "conv{n} a.csv => !error: invalid",
    "conv a.csv > out{n}.csv",
    "cp a{n}.csv b{n}.csv",
    "sed -i s/a/b/ f{n}.csv",
    "cat f{n}.csv => a",
]
RUN, READ, CHECK = frozenset((Op.RUN,)), frozenset((Op.READ,)), frozenset((Op.CHECK,))


@pytest.mark.parametrize(
    ("instruction", "inputs", "outputs", "guides", "checks"),
    [
        ("Convert in.csv as in spec.txt and write out.csv.", "in.csv", "out.csv", "spec.txt", ""),
        ("Read `data/a.json`. Save the result as result.json.", "data/a.json", "result.json", "", ""),
        ("Merge a.csv and b.csv into all.csv, then run ./check all.csv.", "a.csv b.csv", "all.csv", "", "check"),
        ("Write out.csv with ./tool . Also write report.txt .", "", "out.csv report.txt", "", ""),
        ("Change in.csv in place . Follow README.md .", "in.csv", "", "README.md", ""),
        ("The tests in `tests/run_tests.sh` must pass, e.g. twice.", "", "", "", "tests/run_tests.sh"),
        ("Sum up data.csv and write notes.md.", "data.csv", "notes.md", "", ""),
        ("Write out.csv according to spec.txt.", "", "out.csv", "spec.txt", ""),
        ("No files at all: think 3.5 times.", "", "", "", ""),
    ],
)
def test_roles_of_files(instruction: str, inputs: str, outputs: str, guides: str, checks: str) -> None:
    brief = read_brief(instruction)
    found = [" ".join(paths) for paths in (brief.inputs, brief.outputs, brief.guides, brief.checks)]
    assert found == [inputs, outputs, guides, checks]


def test_what_an_answer_says() -> None:
    assert read_answer(Observation("error: unknown unit x, expected m"), RUN).refused
    assert read_answer(Observation("conv: command not found", error=True), RUN).missing
    assert read_answer(Observation("Traceback (most recent call last):"), RUN).failed
    assert read_answer(Observation("<returncode>1</returncode>"), RUN).failed
    assert not read_answer(Observation("<returncode>0</returncode>"), RUN).failed
    assert not read_answer(Observation("error: this is a log line"), READ).failed
    assert read_answer(Observation("cat: x: No such file or directory"), READ).failed
    assert read_answer(Observation("FAIL: 3 columns expected"), CHECK).failed
    assert read_answer(Observation("warning: 2 rows skipped"), RUN).partial == "warning"
    assert not read_answer(Observation("no warnings, 0 skipped"), RUN).partial
    assert read_answer(Observation("a b", truncated=True), READ).partial == "truncated"
    assert not read_answer(Observation("", error=True), frozenset((Op.SEARCH,))).failed


def test_listings() -> None:
    assert listed_files("a.csv  b.csv\ncheck*", "", alone=True) == ["a.csv", "b.csv", "check"]
    assert listed_files("total 8\n-rw-r--r-- 1 u g 9 Jan 1 10:00 a.csv", "", alone=True) == ["a.csv"]
    assert listed_files("a.csv", "data", alone=True) == ["data/a.csv"]
    assert listed_files("sub:\nx.csv", "", alone=True) == ["sub/x.csv"]
    assert listed_files("some words about a.csv\nb.csv", "", alone=False) == ["b.csv"]


def test_commands_repeated_in_the_text_are_not_the_agents_words() -> None:
    trace = read_trace(task("x"), play("echo verified done => ok", "submit"))
    assert "verified" not in trace.said()


def test_answers_are_matched_by_call_id() -> None:
    calls = (ToolCall("bash", {"command": "cat a.txt"}, "1"), ToolCall("bash", {"command": "cat b.txt"}, "2"))
    answers = (Observation("B", call_id="2"), Observation("A", call_id="1"))
    trace = read_trace(task("x"), Trajectory("j", "t1", (Turn("", calls, answers),), StopReason.FINISHED))
    assert [call.answer.text for call in trace.calls] == ["A", "B"]


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
tools = ["bash", "Read", "write_file", "edit", "submit", "search", "copy", "check"]
names = st.sampled_from(tools) | st.text(max_size=12)
keys = st.sampled_from(["command", "path", "file_path", "paths", "content"]) | st.text(max_size=8)
calls = st.builds(ToolCall, names, st.dictionaries(keys, anything, max_size=4), st.text(max_size=3))
answers = st.builds(Observation, st.text(max_size=60), st.booleans(), st.booleans(), st.text(max_size=3))
turns = st.builds(
    Turn,
    st.text(max_size=60),
    st.lists(calls, max_size=3).map(tuple),
    st.lists(answers, max_size=3).map(tuple),
    st.text(max_size=20),
)


@settings(max_examples=200)
@given(st.lists(turns, max_size=8).map(tuple), st.text(max_size=200), st.sampled_from(StopReason))
def test_any_trace_can_be_read(written: tuple[Turn, ...], instruction: str, stop: StopReason) -> None:
    trace = read_trace(Task("t", instruction, provided_skills=("s",)), Trajectory("j", "t", written, stop))
    for finding in find_all(trace).values():
        assert finding.detail
        assert finding.passed == (not finding.miss)


@pytest.mark.parametrize("step", STEPS)
def test_long_traces_take_time_in_proportion(step: str) -> None:
    """Ten times the turns may take forty times as long on a busy machine, a hundred times would be quadratic."""

    def seconds(count: int, name: str) -> float:
        trajectory = play(*(step.replace("{n}", f"{name}{n}") for n in range(count)))
        started = time.process_time()
        find_all(read_trace(task("Convert all csv files. Follow spec.txt. Write out.csv and b.csv."), trajectory))
        return time.process_time() - started

    assert seconds(4000, "long") < 40 * max(seconds(400, "short"), 0.05)
