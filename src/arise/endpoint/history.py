"""Token-exact history of one rollout: a forest of sampled calls that is extended and never re-rendered.

A request that continues a known call extends that call's ids. Any other request is rendered in full and branches off at
the first id that differs from the stored ones: edited or compacted history and sub-agents start new rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain

from arise.endpoint.canonical import Path, key_of, matching, path_of, tools_key
from arise.ports import Format
from arise.types import Segment
from arise.types.chat import Message, ToolSpec


class PromptOrigin(StrEnum):
    """How the prompt of a call was built: extended, or rendered in full for one of three reasons."""

    EXTENDED = "extended"
    OPENING = "opening"
    REWRITTEN = "rewritten"
    UNEXTENDABLE = "unextendable"


@dataclass(frozen=True)
class PromptPlan:
    """The prompt of a request before sampling: all `ids`, the first of which `parent` already has."""

    ids: tuple[int, ...]
    parent: int | None
    known: int
    """The number of ids that belong to the parent and its ancestors."""
    start: PromptOrigin
    after: int | None
    """The call that the messages continue; differs from `parent` if its ids could not be extended."""
    inputs: tuple[Message, ...]
    """The messages after `after`, or all messages if it is None."""
    path: Path
    tools: bytes
    has_tools: bool

    @property
    def opening(self) -> Path:
        """Return the first messages, which distinguish the conversations of a rollout."""
        return self.path[:2]


@dataclass(frozen=True)
class Call:
    """One sampled call: the ids added to its parent's, the sampled ids, and the parsed answer."""

    number: int
    parent: int | None
    added: tuple[int, ...]
    segment: Segment
    reply: Message
    start: PromptOrigin
    after: int | None
    inputs: tuple[Message, ...]
    path: Path
    """All messages up to and including the reply."""
    tools: bytes
    has_tools: bool

    @property
    def request(self) -> tuple[int | None, tuple[int, ...]]:
        """Return the parent and added ids, which are equal for calls that sampled the same prompt."""
        return self.parent, self.added


@dataclass
class History:
    """The calls of one rollout in commit order; `format` renders and extends prompts."""

    format: Format
    calls: list[Call] = field(default_factory=list)
    saw_tools: bool = False
    """Whether any request offered tools, including unanswered ones."""
    _children: dict[int | None, list[int]] = field(default_factory=dict)

    def plan(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> PromptPlan:
        """Build the prompt of a request: extend the newest call that it continues, or render it in full."""
        self.saw_tools = self.saw_tools or bool(tools)
        path, root = path_of(messages), tools_key(tools)
        anchor = self._anchor(path, root)
        tail = tuple(messages[len(anchor.path) :]) if anchor else ()
        if anchor is None or not tail or any(message.role == "assistant" for message in tail):
            why = self._why(path, root)
            return self._rendered(
                messages, tools, PromptPlan((), None, 0, why, None, tuple(messages), path, root, bool(tools))
            )
        path = (*anchor.path, *path[len(anchor.path) :])  # one key per message, however often it is resent
        stored, number = self.ids(anchor.number), anchor.number
        plan = PromptPlan(stored, number, len(stored), PromptOrigin.EXTENDED, number, tail, path, root, bool(tools))
        longer = self.format.extend(stored, tail, tools)
        if longer is not None and tuple(longer[: len(stored)]) == stored:
            return replace(plan, ids=tuple(longer))
        return self._rendered(messages, tools, replace(plan, start=PromptOrigin.UNEXTENDABLE))

    def commit(self, plan: PromptPlan, segment: Segment, reply: Message) -> Call:
        """Append one sampled call; calls planned concurrently become siblings."""
        call = Call(
            len(self.calls),
            plan.parent,
            plan.ids[plan.known :],
            segment,
            reply,
            plan.start,
            plan.after,
            plan.inputs,
            (*plan.path, key_of(reply)),
            plan.tools,
            plan.has_tools,
        )
        self.calls.append(call)
        self._children.setdefault(plan.parent, []).append(call.number)
        return call

    def ids(self, number: int) -> tuple[int, ...]:
        """Return all ids up to and including those that a call sampled."""
        return tuple(chain.from_iterable((*call.added, *call.segment.ids) for call in self.lineage(number)))

    def lineage(self, number: int) -> list[Call]:
        """Return a call with its ancestors, oldest first."""
        found: list[Call] = []
        at: int | None = number
        while at is not None:
            found.append(self.calls[at])
            at = self.calls[at].parent
        return found[::-1]

    def children(self, number: int | None) -> Sequence[int]:
        """Return the calls that continue a call; for None, return those that start a conversation."""
        return self._children.get(number, ())

    def leaves(self) -> Iterator[Call]:
        """Yield the calls without children, oldest first."""
        return (call for call in self.calls if not self.children(call.number))

    def _anchor(self, path: Path, root: bytes) -> Call | None:
        """Return the deepest call all of whose messages were resent; the newest if there are several."""
        fits = (call for call in self.calls if call.tools == root and len(call.path) <= len(path))
        for call in sorted(fits, key=lambda call: (-len(call.path), -call.number)):
            if matching(call.path, path) == len(call.path):
                return call
        return None

    def _why(self, path: Path, root: bytes) -> PromptOrigin:
        """Return why a prompt is rendered in full: a known opening was rewritten, or the conversation is new."""
        known = (call for call in self.calls if call.tools == root)
        shared = any(matching(call.path, path) >= len(path[:2]) for call in known)
        return PromptOrigin.REWRITTEN if shared else PromptOrigin.OPENING

    def _rendered(self, messages: Sequence[Message], tools: Sequence[ToolSpec], plan: PromptPlan) -> PromptPlan:
        """Render the whole prompt and branch off after the deepest call whose ids are a prefix of it."""
        ids = tuple(self.format.prompt(messages, tools))
        parent, known = self._token_equal(ids)
        return replace(plan, ids=ids, parent=parent, known=known)

    def _token_equal(self, ids: tuple[int, ...]) -> tuple[int | None, int]:
        best: tuple[int | None, int] = (None, 0)
        open_ends = [best]
        while open_ends:
            parent, known = open_ends.pop()
            if known > best[1]:
                best = parent, known
            ends = ((number, self._end(number, ids, known)) for number in self.children(parent))
            open_ends += [(number, end) for number, end in ends if end is not None and end < len(ids)]
        return best

    def _end(self, number: int, ids: tuple[int, ...], at: int) -> int | None:
        """Return where a call ends in `ids`, or None if its ids differ at this position."""
        call = self.calls[number]
        own = (*call.added, *call.segment.ids)
        return at + len(own) if ids[at : at + len(own)] == own else None
