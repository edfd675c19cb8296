"""Traces of verifiers and prime-rl: one episode per line, messages as a graph of nodes, rewards by name.

prime-rl writes `rollouts/step_N/train|eval/all|effective/traces.jsonl`: an episode of `effective` is also in `all`,
with the same id. An episode that failed before any trace was made is written, too.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, lines, opening_values
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.analyze.messages import add_messages
from arise.types import StopReason


class VerifiersReader:
    """Read every trace of an episode as an attempt; the legacy `results.jsonl` is read as messages."""

    name = "verifiers"

    def detect(self, path: Path) -> bool:
        if not path.is_file() or path.suffix != ".jsonl":
            return False
        return any(_traces(row) or _episode(row) for row in opening_values(path, 2))

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        for number, row in lines(path):
            if isinstance(row, Unreadable):
                yield Skipped(f"{path}:{number}", str(row))
                continue
            found = _traces(row)
            if not found:
                yield self._failed(as_mapping(row), f"{path}:{number}", options)
            for place, trace in enumerate(found):
                shown = f"{path}:{number}" + (f"#{place}" if len(found) > 1 else "")
                yield self._trace(trace, as_mapping(row), shown, options)

    def _failed(self, episode: Mapping[str, Any], place: str, options: Options) -> Item:
        """Return an episode without a trace as an attempt that infrastructure ended."""
        errors = episode.get("errors")
        if not _episode(episode) or not errors:
            return Skipped(place, "no trace in this episode")
        return self._found(Conversation(), episode, episode, place, options)

    def _trace(self, trace: Mapping[str, Any], episode: Mapping[str, Any], place: str, options: Options) -> Item:
        into = Conversation()
        add_messages(into, _own(_path(trace["nodes"]), into))
        if into.drafts or trace.get("ok") is False:
            return self._found(into, trace, episode, place, options)
        return Skipped(place, "a trace without a message of the agent")

    def _found(
        self, into: Conversation, trace: Mapping[str, Any], episode: Mapping[str, Any], place: str, options: Options
    ) -> Found:
        task = as_mapping(trace.get("task")) or {"key": trace.get("task")}
        data = as_mapping(task.get("data"))
        named = (task.get("key"), task.get("id"), task.get("hash"), data.get("id"), data.get("name"), data.get("idx"))
        task_id = str(next((value for value in named if value not in (None, "")), place))
        calls = [call for call in trace.get("calls") or () if isinstance(call, Mapping)]
        stop = str(trace.get("stop_condition") or "")
        reason = next((reason for limit, reason in STOPS.items() if limit in stop), StopReason.FINISHED)
        name = str(trace.get("id") or "")
        env = as_mapping(episode.get("env"))
        return Found(
            into.trajectory(name or place, task_id, reason),
            into.task(task_id, options.instructions),
            _outcome(trace, options),
            place,
            self.name,
            checksum=str(task.get("hash") or ""),
            model=str(calls[0].get("model", "")) if calls else "",
            group=str(env.get("name") or env.get("id") or ""),
            attempt=name,
            notes=into.notes,
        )


STOPS = {
    "max_turns": StopReason.TURN_LIMIT,
    "max_input_tokens": StopReason.TOKEN_LIMIT,
    "max_output_tokens": StopReason.TOKEN_LIMIT,
    "max_total_tokens": StopReason.TOKEN_LIMIT,
    "context_length": StopReason.CONTEXT_LIMIT,
    "agent_timeout": StopReason.TIME_LIMIT,
}
"""Limits of the framework, by the condition that stopped a trace."""


def _traces(row: object) -> list[Mapping[str, Any]]:
    """Return the traces of an episode: under `traces`, or the line itself.

    In an episode of several agents those that are not trained, such as a judge, are not the agent that is looked at.
    """
    if not isinstance(row, Mapping):
        return []
    inner = row.get("traces")
    rows = inner if isinstance(inner, list) else [row]
    found = [trace for trace in rows if isinstance(trace, Mapping) and isinstance(trace.get("nodes"), list)]
    return [trace for trace in found if as_mapping(trace.get("agent")).get("trainable") is not False] or found


def _episode(row: object) -> bool:
    """Return whether a line is an episode, with or without traces."""
    return isinstance(row, Mapping) and isinstance(row.get("traces"), list) and {"env", "task", "ok"} <= row.keys()


def _path(nodes: list[Any]) -> list[Mapping[str, Any]]:
    """Return the messages from the root to the last node, without abandoned branches."""
    known = [node for node in nodes if isinstance(node, Mapping)]
    by_id = {node.get("id", place): node for place, node in enumerate(known)}
    chain: list[Mapping[str, Any]] = []
    node = known[-1] if known else None
    while node is not None and len(chain) <= len(known):
        chain.append(node)
        parent = node.get("parent")
        node = by_id.get(parent) if parent is not None else None
    return chain[::-1]


def _own(nodes: list[Mapping[str, Any]], into: Conversation) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of nodes, without agent messages that the prompt supplied and no model wrote."""
    told = any(node.get("sampled") for node in nodes)
    for node in nodes:
        inner = node.get("message")
        message: Mapping[str, Any] = inner if isinstance(inner, Mapping) else node
        if told and not node.get("sampled") and message.get("role") == "assistant":
            into.note("agent messages supplied by the prompt")
        else:
            yield message


def _outcome(trace: Mapping[str, Any], options: Options) -> Outcome:
    """Return the weighted sum of rewards; if one reward is missing, the verdict is missing.

    `errors` holds those of every try: a trace that is `ok` in the end has a verdict.
    """
    errors = trace.get("errors") or ()
    stop = str(trace.get("stop_condition") or "")
    if trace.get("ok") is False or (errors and "ok" not in trace):
        if stop == "agent_timeout":
            return Outcome(Triage.TIME_LIMIT, reason=stop)
        return Outcome(Triage.INFRASTRUCTURE, reason=_named(errors) or stop or "the trace is not ok")
    found = _scored(trace, options)
    late = stop == "agent_timeout" and found.passed is False
    return Outcome(Triage.TIME_LIMIT, False, found.reward, stop) if late else found


def _named(errors: object) -> str:
    """Return the last error as `Type: message`."""
    last = errors[-1] if isinstance(errors, list) and errors else None
    if isinstance(last, Mapping):
        return f"{last.get('type')}: {last.get('message') or ''}"[:160]
    return str(last or "")[:160]


def _scored(trace: Mapping[str, Any], options: Options) -> Outcome:
    rewards = trace.get("rewards")
    if not isinstance(rewards, Mapping) or not rewards:
        value = trace.get("reward")
        return verdict(float(value) if isinstance(value, int | float) else None)
    wanted = options.fields.get("outcome")
    chosen = {wanted: rewards[wanted]} if wanted in rewards else rewards
    total = 0.0
    for name, value in chosen.items():
        score = value.get("score") if isinstance(value, Mapping) else value
        weight = value.get("weight", 1.0) if isinstance(value, Mapping) else 1.0
        if not isinstance(score, int | float):
            return Outcome(Triage.UNVERIFIED, reason=f"reward {name} is null")
        total += float(score) * float(weight if isinstance(weight, int | float) else 1.0)
    return verdict(total)
