"""Build and check the training rows and turns of a rollout; a gap or a wrong mask is a fault.

There is one row per leaf of the agent's conversations. A sampled call that several rows share trains only in the first
of them, so no token is trained twice. Side calls such as titles are kept separately and never train.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arise.endpoint.history import Call, History
from arise.types import Observation, Tokens, ToolCall, Turn
from arise.types.chat import Message

MISSING_LOGPROB = -9999.0
"""The value vLLM reports for a missing log-probability."""
ROUNDING = 1e-6


class BrokenRecord(Exception):  # noqa: N818 - what happened, not which class of error it is
    """The token record of a rollout is inconsistent: an infrastructure fault, never trained on."""


@dataclass(frozen=True)
class Export:
    """The result of a rollout: rows to train on, turns to judge, and statistics of its history."""

    rows: tuple[Tokens, ...]
    turns: tuple[Turn, ...]
    system_prompt: str
    starts: Counter[str]
    """Counts of how the agent's prompts were built; all but `extended` are full renderings."""
    auxiliary: int
    superseded: int


def export(history: History) -> Export:
    """Convert a finished history to rows and turns; raise BrokenRecord if a check fails."""
    dropped = superseded(history)
    agent = [call for call in history.calls if call.number not in dropped and _is_agent(history, call)]
    for call in agent:
        _check_sampled(call)
    rows = _rows(history, agent)
    _check_rows(history, agent, rows)
    return Export(
        tuple(rows),
        tuple(_turn(history, call) for call in agent),
        _system_prompt(agent[0].inputs) if agent else "",
        Counter(call.start.value for call in agent),
        len(history.calls) - len(dropped) - len(agent),
        len(dropped),
    )


def _system_prompt(messages: Sequence[Message]) -> str:
    """Join the leading system messages of a conversation."""
    leading = itertools.takewhile(lambda message: message.role == "system", messages)
    return "\n\n".join(message.text for message in leading)


def superseded(history: History) -> set[int]:
    """Return calls replaced by a repeated request: keep the continued answer, or else the latest."""
    continued = {call.after for call in history.calls} | {call.parent for call in history.calls}
    asked: dict[tuple[int | None, tuple[int, ...]], list[Call]] = {}
    for call in history.calls:
        asked.setdefault(call.request, []).append(call)
    dropped = set[int]()
    for calls in asked.values():
        kept = [call for call in calls if call.number in continued] or calls[-1:]
        dropped |= {call.number for call in calls} - {call.number for call in kept}
    return dropped


def _is_agent(history: History, call: Call) -> bool:
    """Return whether a conversation is the agent's: it offers tools, or no conversation of the rollout does."""
    return not history.saw_tools or any(ancestor.has_tools for ancestor in history.lineage(call.number))


def _rows(history: History, agent: Sequence[Call]) -> list[Tokens]:
    numbers = {call.number for call in agent}
    leaves = [call for call in agent if not numbers & set(history.children(call.number))]
    trained = set[int]()
    rows = []
    for leaf in leaves:
        lineage = history.lineage(leaf.number)
        rows.append(_row(lineage, numbers - trained))
        trained |= {call.number for call in lineage}
    return rows


def _row(lineage: Sequence[Call], train: set[int]) -> Tokens:
    """Join the calls of one conversation; ids not trained here have log-probability 0 and version -1."""
    ids, generated, logprobs, versions = list[int](), list[bool](), list[float](), list[int]()
    for call in lineage:
        sampled, own = call.segment, call.number in train
        count, added = len(sampled.ids), len(call.added)
        ids += [*call.added, *sampled.ids]
        generated += [False] * added + [own] * count
        logprobs += [0.0] * added + (list(sampled.logprobs) if own else [0.0] * count)
        versions += [-1] * added + (list(sampled.versions) if own else [-1] * count)
    return Tokens(
        np.array(ids, dtype=np.int64),
        np.array(generated, dtype=np.bool_),
        np.array(logprobs, dtype=np.float64),
        np.array(versions, dtype=np.int64),
    )


def _check_sampled(call: Call) -> None:
    sampled = call.segment
    if not len(sampled.ids) == len(sampled.logprobs) == len(sampled.versions):
        raise BrokenRecord(f"call {call.number}: ids, log-probs and versions differ in length")
    if not all(math.isfinite(p) and MISSING_LOGPROB < p <= ROUNDING for p in sampled.logprobs):
        raise BrokenRecord(f"call {call.number}: a log-probability is missing, positive or not finite")


def _check_rows(history: History, agent: Sequence[Call], rows: Sequence[Tokens]) -> None:
    """Check the rows against the calls they were built from."""
    for call in agent:
        ids = np.array(history.ids(call.number), dtype=np.int64)
        if not any(np.array_equal(row.ids_U[: len(ids)], ids) for row in rows):
            raise BrokenRecord(f"call {call.number}: its prompt and completion begin no row")
    trained = sum(int(row.generated_U.sum()) for row in rows)
    sampled = sum(len(call.segment.ids) for call in agent)
    if trained != sampled:
        raise BrokenRecord(f"{trained} tokens would be trained, {sampled} were sampled by the agent")


def _turn(history: History, call: Call) -> Turn:
    """Convert a call to a turn; the client's next messages are its observations."""
    following = next((other for other in history.calls if other.after == call.number), None)
    seen = [message for message in following.inputs if message.role in ("tool", "user")] if following else []
    return Turn(
        call.reply.text,
        tuple(ToolCall(made.name, made.arguments, made.id) for made in call.reply.calls),
        tuple(Observation(message.text, call_id=message.call_id) for message in seen),
        call.reply.reasoning,
    )
