"""Render a rollout for the judge: JSON within a context budget, evolved skills masked, truncation stated.

Works on slices, so 100 MB of tool output costs no more than its excerpt.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arise.config.llm import EndpointConfig
from arise.llm.prompts.prompt import to_json
from arise.types import Pool, Rollout, Task, Trajectory, Turn

MASK = "[guidance shown to the agent, withheld from the judge]"
_MIN_FIELD = 200
_MAX_DEPTH = 6
LEAST_TRACE_CHARS = 3_000
PROMPT_CHARS = 10_000
"""Room that the templates of a judge take, schemas included."""
_TURN_OVERHEAD = 120
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_=>])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class RenderedTrace:
    """The `sample_result` of a prompt, with a description of what was left out."""

    sample: dict[str, object]
    notes: tuple[str, ...]


@dataclass
class _Excerpt:
    """Clip and clean texts, counting what is removed."""

    cap: int
    masked: Sequence[str]
    cut: int = 0
    control: int = 0

    def text(self, text: str, cap: int | None = None) -> str:
        limit = self.cap if cap is None else cap
        if len(text) > limit:
            head = limit * 3 // 5
            self.cut += len(text) - limit
            text = f"{text[:head]}[... {len(text) - limit:,} characters cut ...]{text[len(text) - limit + head :]}"
        clean, colours = _ANSI.subn("", text)
        clean, controls = _CONTROL.subn("\N{REPLACEMENT CHARACTER}", clean)
        self.control += colours + controls
        for skill in self.masked:
            clean = clean.replace(skill, MASK)
        return clean

    def value(self, value: object, depth: int = 0) -> object:
        """Return an argument of a call, with every text inside it clipped and cleaned."""
        if isinstance(value, str):
            return self.text(value)
        if depth < _MAX_DEPTH and isinstance(value, Mapping):
            return {self.text(str(key), 200): self.value(inner, depth + 1) for key, inner in value.items()}
        if depth < _MAX_DEPTH and isinstance(value, list | tuple):
            return [self.value(inner, depth + 1) for inner in value]
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        return self.text(repr(value))


def trace_room(endpoint: EndpointConfig, chars_per_token: float, rubric_chars: int) -> int:
    """Return the characters that an endpoint leaves for a trace after prompt, rubrics and reply."""
    return int((endpoint.context_tokens - endpoint.max_tokens) * chars_per_token) - PROMPT_CHARS - rubric_chars


def render_trace(task: Task, rollout: Rollout, pool: Pool, budget: int) -> RenderedTrace | str:
    """Render the trace within `budget` characters of JSON, or return the reason why it does not fit."""
    if budget < LEAST_TRACE_CHARS:
        return f"the context leaves {budget:,} characters for the trace, at least {LEAST_TRACE_CHARS:,} are needed"
    allowance = budget
    for _ in range(8):
        trace = _render(task, rollout, pool, allowance)
        if trace is None:
            return f"not a single turn of the trace fits into {budget:,} characters"
        size = len(to_json(trace.sample))
        if size <= budget:
            return trace
        allowance = min(int(allowance * 0.75), int(allowance * budget / size))
    return f"the trace does not fit into {budget:,} characters"


def _render(task: Task, rollout: Rollout, pool: Pool, budget: int) -> RenderedTrace | None:
    trajectory = rollout.trajectory
    excerpt = _Excerpt(0, _shown_texts(trajectory, pool))
    instruction = excerpt.text(task.instruction, budget // 4)
    system_prompt = excerpt.text(_system_prompt(trajectory, pool), budget // 8)
    left = budget - len(instruction) - len(system_prompt) - 600
    turns = trajectory.turns
    sizes = np.array([sum(map(len, _texts(turn))) for turn in turns], dtype=np.int64)
    excerpt.cap = _field_cap(turns, sizes, left)
    first, last = _kept_turns(turns, sizes, excerpt.cap, left)
    if turns and first == 0 and last == len(turns):
        return None
    shown_turns = [_turn(i, turns[i], excerpt) for i in range(first)]
    if first < last:
        omitted = int(sizes[first:last].sum())
        excerpt.cut += omitted
        shown_turns.append(
            {"cut": f"turns {first + 1} to {last}: {last - first:,} turns, {omitted:,} characters left out"}
        )
    shown_turns += [_turn(i, turns[i], excerpt) for i in range(last, len(turns))]
    sample: dict[str, object] = {
        "task_instruction": instruction,
        "task_domain": task.domain,
        "task_skills": list(task.provided_skills),
        "system_prompt": system_prompt,
        "llm_interaction_trajectory": shown_turns,
        "stop_reason": trajectory.stop.value,
    }
    if rollout.success is not None:
        sample["verifier_success"] = rollout.success
    if rollout.reward is not None:
        sample["verifier_score"] = rollout.reward
    notes = _notes(excerpt, last - first, len(turns))
    if notes:
        sample["cut"] = list(notes)
    return RenderedTrace(sample, notes)


def _notes(excerpt: _Excerpt, omitted_turns: int, turns: int) -> tuple[str, ...]:
    notes = []
    if excerpt.cut:
        notes.append(f"{excerpt.cut:,} characters were cut from long texts or left out with their turns")
    if omitted_turns > 0:
        notes.append(f"{omitted_turns:,} of {turns:,} turns were left out")
    if excerpt.control:
        notes.append(f"{excerpt.control:,} control sequences were removed or replaced")
    return tuple(notes)


def _shown_texts(trajectory: Trajectory, pool: Pool) -> list[str]:
    shown = {skill.rubric_id for skill in trajectory.shown_skills}
    return [pair.skill.text for pair in pool.pairs if pair.rubric.id in shown]


def _system_prompt(trajectory: Trajectory, pool: Pool) -> str:
    """Return the system prompt; drop it if it contains an unknown skill text that cannot be masked."""
    current = {(pair.rubric.id, pair.skill.revision): pair.skill.text for pair in pool.pairs}
    for skill in trajectory.shown_skills:
        text = current.get((skill.rubric_id, skill.revision))
        if text is None or text not in trajectory.system_prompt:
            return MASK
    prompt = trajectory.system_prompt
    for skill in trajectory.shown_skills:
        prompt = prompt.replace(current[skill.rubric_id, skill.revision], MASK)
    return prompt


def _texts(turn: Turn) -> Iterator[str]:
    yield turn.text
    yield turn.reasoning
    for call in turn.calls:
        yield from _leaves(call.arguments)
    for observation in turn.observations:
        yield observation.text


def _leaves(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH and isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner, depth + 1)
    elif depth < _MAX_DEPTH and isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, depth + 1)


def _field_cap(turns: Sequence[Turn], sizes: NDArray[np.int64], budget: int) -> int:
    """Return the largest cap on a single text with which all turns fit, with a minimum."""
    room = budget - _TURN_OVERHEAD * len(turns)
    if int(sizes.sum()) <= room:
        return max(_MIN_FIELD, int(sizes.max(initial=0)))
    lengths = np.array([len(text) for turn in turns for text in _texts(turn)], dtype=np.int64)
    low, high = _MIN_FIELD, int(lengths.max(initial=_MIN_FIELD))
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(lengths, middle + 40).sum()) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _kept_turns(turns: Sequence[Turn], sizes: NDArray[np.int64], cap: int, budget: int) -> tuple[int, int]:
    """Return which turns are kept: those before `first` (a third of the room) and from `last` on."""
    costs = np.array(
        [
            _TURN_OVERHEAD * (1 + len(turn.calls)) + sum(min(len(text), cap + 40) for text in _texts(turn))
            for turn in turns
        ],
        dtype=np.int64,
    )
    if int(sizes.sum()) + _TURN_OVERHEAD * len(turns) <= budget or int(costs.sum()) <= budget:
        return len(turns), len(turns)
    first = int(np.searchsorted(np.cumsum(costs), budget // 3, side="right"))
    tail = int(np.searchsorted(np.cumsum(costs[::-1]), budget - budget // 3, side="right"))
    return first, max(first, len(turns) - tail)


def _turn(index: int, turn: Turn, excerpt: _Excerpt) -> dict[str, object]:
    shown_turn: dict[str, object] = {"turn": index + 1, "agent": excerpt.text(turn.text)}
    if turn.reasoning:
        shown_turn["reasoning"] = excerpt.text(turn.reasoning)
    if turn.calls:
        shown_turn["calls"] = [
            {
                "name": excerpt.text(call.name, 200),
                "arguments": excerpt.value(call.arguments),
                "id": excerpt.text(call.id, 100),
            }
            for call in turn.calls
        ]
    if turn.observations:
        shown_turn["observations"] = [
            {
                "text": excerpt.text(observation.text),
                "error": observation.error,
                "truncated": observation.truncated,
                "call_id": excerpt.text(observation.call_id, 100),
            }
            for observation in turn.observations
        ]
    return shown_turn
