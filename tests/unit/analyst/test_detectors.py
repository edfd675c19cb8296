"""Every detector on hand-written traces: the opportunity, the verdict, and what must not count as either."""

import pytest
from tests.unit.analyst.cases import CASES, NONE, PASS, Case
from tests.unit.analyst.played import play, task

from arise.analyst.catalogue import wordings
from arise.analyst.detectors import DETECTORS, find_all
from arise.analyst.trace import read_trace
from arise.taxonomy import patterns
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.pattern}-{row.expected}-{row.why}".replace(" ", "_"))
def test_detector_says(row: Case) -> None:
    trace = read_trace(task(row.instruction), play(*row.steps, stop=row.stop))
    finding = DETECTORS[row.pattern].find(trace)
    said = NONE if finding is None else PASS if finding.passed else finding.miss
    assert said == row.expected, finding
    assert DETECTORS[row.pattern].applicable(trace) == (row.expected != NONE)


def test_every_pattern_of_the_catalogue_has_a_detector_and_a_wording() -> None:
    catalogue = [pattern.id for pattern in patterns()]
    assert sorted(DETECTORS) == catalogue == list(wordings())


def test_the_table_holds_every_pattern_in_all_three_ways_and_every_way_to_fail() -> None:
    shown = {(row.pattern, row.expected) for row in CASES}
    for pattern_id, wording in wordings().items():
        assert {PASS, NONE, *wording.misses} <= {said for pattern, said in shown if pattern == pattern_id}


def test_skills_that_ship_with_a_task_are_guidance() -> None:
    offered = Task("t1", "Make the slides.", provided_skills=("deck-maker",))
    ignored = find_all(read_trace(offered, play("gen > a.pptx", "submit")))
    opened = find_all(read_trace(offered, play("cat skills/deck-maker/SKILL.md => use x", "gen > a.pptx", "submit")))
    assert not ignored["P08"].passed
    assert opened["P08"].passed


def test_tools_with_paths_read_like_shell_commands() -> None:
    calls = [
        ToolCall("Read", {"file_path": "/app/spec.txt"}),
        ToolCall("write_file", {"path": "out.csv", "content": "a"}),
        ToolCall("str_replace_based_edit_tool", {"command": "view", "path": "out.csv"}),
        ToolCall("finish", {}),
    ]
    turns = tuple(Turn("", (call,), (Observation("text"),)) for call in calls)
    trace = read_trace(task("Follow spec.txt and write out.csv."), Trajectory("j", "t1", turns, StopReason.FINISHED))
    found = find_all(trace)
    assert found["P08"].passed
    assert found["P02"].passed


def test_the_system_prompt_is_never_read() -> None:
    steps = ("ls => check in.csv spec.txt", "conv in.csv > out.csv", "submit")
    skill = "Read notes.txt and README.md first. Run ./check. All units are cm. Write a.csv and b.csv."
    work = task("Convert in.csv and write out.csv.")
    assert find_all(read_trace(work, play(*steps))) == find_all(read_trace(work, play(*steps, system_prompt=skill)))
