"""What the judge sees of a rollout: bounded, masked, clean, and honest about what was cut."""

import json
import resource
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arise.llm.judge.trace import MASK, RenderedTrace, render_trace
from arise.llm.prompts.prompt import to_json
from arise.types import (
    Observation,
    Pair,
    Pool,
    Rollout,
    ShownSkill,
    Skill,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)
from tests.unit.llm.builders import TASK, pool, rollout, rubric

BUDGET = 60_000


def of_turns(turns: tuple[Turn, ...], system: str = "", shown: tuple[ShownSkill, ...] = ()) -> Rollout:
    return Rollout(Trajectory("t", TASK.id, turns, StopReason.FINISHED, system, (), shown), None)


def rendered(given: Rollout, budget: int = BUDGET, of: Pool | None = None, task: Task = TASK) -> RenderedTrace:
    trace = render_trace(task, given, of or Pool(), budget)
    assert isinstance(trace, RenderedTrace), trace
    encoded = to_json(trace.sample)
    assert len(encoded) <= budget
    assert json.loads(encoded) == trace.sample
    return trace


def test_a_short_trace_is_whole() -> None:
    trace = rendered(rollout("ls -la", turns=3))
    steps = trace.sample["llm_interaction_trajectory"]
    assert isinstance(steps, list)
    assert [step["turn"] for step in steps] == [1, 2, 3]
    assert steps[0]["calls"] == [{"name": "bash", "arguments": {"command": "ls -la"}, "id": "c0"}]
    assert trace.notes == ()
    assert "cut" not in trace.sample
    assert (trace.sample["verifier_success"], trace.sample["verifier_score"]) == (True, 1.0)


def test_an_unknown_outcome_is_not_shown_as_one() -> None:
    assert "verifier_score" not in rendered(of_turns((Turn("a"),))).sample


def test_a_hundred_megabytes_are_judged_in_bounded_memory() -> None:
    big = "x" * 10_000_000
    turns = tuple(
        Turn("look", (ToolCall("bash", {"command": "cat log"}),), (Observation(big + str(i)),)) for i in range(10)
    )
    tracemalloc.start()
    started = time.monotonic()
    trace = rendered(of_turns(turns))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000
    assert time.monotonic() - started < 5.0
    assert "characters were cut" in trace.notes[0]
    assert len(trace.sample["llm_interaction_trajectory"]) == 10  # type: ignore[arg-type]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2_000_000


def test_twenty_thousand_turns_keep_their_beginning_and_their_end() -> None:
    turns = tuple(
        Turn(f"step {i}", (ToolCall("bash", {"command": "ls"}),), (Observation("ok"),)) for i in range(20_000)
    )
    started = time.monotonic()
    trace = rendered(of_turns(turns))
    assert time.monotonic() - started < 10.0
    steps = trace.sample["llm_interaction_trajectory"]
    assert isinstance(steps, list)
    assert steps[0]["turn"] == 1
    assert steps[-1]["turn"] == 20_000
    gap = next(step for step in steps if "cut" in step)
    assert "turns left out" not in gap["cut"] or gap["cut"].startswith("turns ")
    assert any("of 20,000 turns were left out" in note for note in trace.notes)
    shown = sum("turn" in step for step in steps)
    assert any(f"{20_000 - shown:,} of 20,000 turns" in note for note in trace.notes)


def test_a_turn_that_cannot_fit_is_refused_with_a_reason() -> None:
    calls = tuple(ToolCall("bash", {"command": "ls"}) for _ in range(5_000))
    reason = render_trace(TASK, of_turns((Turn("many", calls),)), Pool(), BUDGET)
    assert isinstance(reason, str)
    assert "fit" in reason


def test_control_characters_are_replaced_and_counted() -> None:
    hostile = "a\0b\x1b[31mred\x1b[0m\ud800\x07 \x1b]0;title\x07end"
    trace = rendered(of_turns((Turn(hostile, (), (Observation(hostile),)),)))
    text = trace.sample["llm_interaction_trajectory"][0]["agent"]  # type: ignore[index]
    assert text == "a\ufffdbred\ufffd\ufffd end"
    assert any("control sequences" in note for note in trace.notes)


ARGUMENT = st.recursive(st.text(max_size=50) | st.integers() | st.floats() | st.none(), st.lists, max_leaves=5)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.text(max_size=400), max_size=5),
    st.integers(3_000, 20_000),
    st.dictionaries(st.text(max_size=5), ARGUMENT, max_size=3),
)
def test_any_text_and_argument_is_rendered_or_refused(
    texts: list[str], budget: int, arguments: dict[str, object]
) -> None:
    turns = tuple(Turn(text, (ToolCall(text, arguments, text),), (Observation(text * 20),)) for text in texts)
    trace = render_trace(TASK, of_turns(turns, texts[0] if texts else ""), Pool(), budget)
    if isinstance(trace, RenderedTrace):
        assert len(to_json(trace.sample)) <= budget


def test_shown_skills_are_masked_wherever_they_occur() -> None:
    of = pool(2)
    secret = of.pairs[0].skill.text
    shown = (ShownSkill("r001", 0),)
    given = of_turns((Turn(f"The guidance says: {secret}"),), f"You are an agent.\n- {secret}", shown)
    trace = rendered(given, of=of)
    assert secret not in to_json(trace.sample)
    assert trace.sample["system_prompt"] == f"You are an agent.\n- {MASK}"


def test_a_skill_text_that_is_no_longer_known_hides_the_whole_system_prompt() -> None:
    of = Pool((Pair(rubric(1), Skill("A newer text.", True, 3)),), 2, 1)
    given = of_turns((Turn("a"),), "You are an agent.\n- The older text.", (ShownSkill("r001", 2),))
    assert rendered(given, of=of).sample["system_prompt"] == MASK
    assert rendered(given, of=Pool()).sample["system_prompt"] == MASK


def test_a_huge_instruction_leaves_room_for_the_trace() -> None:
    task = Task("x", "do " * 1_000_000)
    trace = rendered(rollout(), task=task)
    assert len(trace.sample["llm_interaction_trajectory"]) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [5_000, 20_000, 100_000, 300_000])
def test_the_budget_is_kept_and_used(budget: int) -> None:
    turns = tuple(Turn(f"{i} " + "word\n" * 200, (), (Observation('"quoted"\n' * 300),)) for i in range(60))
    size = len(to_json(rendered(of_turns(turns), budget).sample))
    assert size >= min(budget, 150_000) * 0.4
