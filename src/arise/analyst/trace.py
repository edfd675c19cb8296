"""A trajectory as events: what was called, on which files, and what was returned (App. "Rollout Evidence").

It reads the instruction, the agent's text and calls, and the observations; never a reward, and never the system prompt,
which contains evolved skills.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice

from arise.analyst.acts import Act, Op, backup_like, path_like
from arise.analyst.answers import ParsedAnswer, files_reported_written, listed_files, read_answer
from arise.analyst.brief import Brief, clean_path, ending, guide_like, read_brief, runnable_check
from arise.analyst.toolcalls import acts_of_call
from arise.analyst.vocabulary import vocabulary
from arise.types import Observation, StopReason, Task, ToolCall, Trajectory, Turn

_NOTHING = Observation("")
READERS = vocabulary("viewers") | vocabulary("filters") | vocabulary("script_filters") | vocabulary("searchers")
_NUMBERED = re.compile(r"^\s*\d+(?:[:|\t\u2192]).*\n\s*\d+[:|\t\u2192]", re.MULTILINE)
"""Two numbered lines of a file."""
_REPOSITORY = frozenset(
    (".git", ".gitignore", "setup.py", "setup.cfg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml",
     "CMakeLists.txt", "build.gradle", "Gemfile", "composer.json", "tox.ini")
)  # fmt: skip
"""Files that only a source repository has."""
_REPOSITORY_WORDS = re.compile(r"\b(?:repository|codebase|repo|pull request|github)\b", re.IGNORECASE)
_EDITS = re.compile(
    r'"(?:old_str|old_string|insert_line|search)"|"(?:str_replace|insert)"|^(?:edit|insert)\b|Update File'
)
"""Calls that change a part of a file, which therefore was there before."""
_SCRATCH = re.compile(
    r"repro|replicat|scratch|demo|minimal|debug|verif|check|test|try|tmp|temp|bug|issue|fix|edit|apply|patch",
    re.IGNORECASE,
)
_GLOB_REACH = 256  # number of known files matched against a pattern: keeps hostile traces linear


@dataclass(frozen=True, slots=True)
class Event:
    """One act in order — `Event(seq=4, at=2, turn=3, op=Op.READ, path="spec.txt", ...)`; turns count from 1."""

    seq: int
    at: int
    turn: int
    op: Op
    path: str
    program: str
    text: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call with its answer; `program` is the one that did the work."""

    at: int
    turn: int
    text: str
    program: str
    ops: frozenset[Op]
    answer: ParsedAnswer
    first: int
    """Sequence number of its first event."""


@dataclass(frozen=True)
class Trace:
    """One parsed trajectory; `seen` maps each file to the sequence number when it became visible (-1: initially)."""

    brief: Brief
    provided_skills: tuple[str, ...]
    calls: tuple[Call, ...]
    events: tuple[Event, ...]
    words: tuple[tuple[int, str], ...]
    seen: Mapping[str, int]
    listed: Mapping[str, int]
    finished: bool

    def of(self, *ops: Op) -> list[Event]:
        """Return the events of these kinds, in order."""
        if len(ops) == 1:
            return self._by_op.get(ops[0], [])
        return [event for event in self.events if event.op in ops]

    @cached_property
    def _by_op(self) -> dict[Op, list[Event]]:
        table: dict[Op, list[Event]] = {}
        for event in self.events:
            table.setdefault(event.op, []).append(event)
        return table

    @cached_property
    def artifacts(self) -> list[Event]:
        """Return successful writes without backup copies; only named outputs, once one of them was written.

        In a source repository the work is on existing files: scripts that the agent adds are its tools.
        """
        done = [e for e in self.of(Op.WRITE) if not e.failed and e.path and not backup_like(e.path)]
        wanted = [e for e in done if e.path in self.brief.outputs]
        if not wanted and self.repository:
            return [e for e in done if not self.is_own_tool(e.path)]
        return wanted or done

    def is_own_tool(self, path: str) -> bool:
        """Return whether a file is a script that the agent added to reproduce or check something."""
        return path in self.created and bool(_SCRATCH.search(path.rsplit("/", 1)[-1]))

    @cached_property
    def created(self) -> frozenset[str]:
        """Return the files that the agent made itself: nothing showed them before it wrote them whole."""
        first: dict[str, Event] = {}
        for event in self.events:
            first.setdefault(event.path, event)
        return frozenset(
            path
            for path, event in first.items()
            if event.op is Op.WRITE and self.seen.get(path, event.seq) >= event.seq and not _EDITS.search(event.text)
        )

    @cached_property
    def results(self) -> dict[str, Event]:
        """Return the last write of each main result: artifacts of the same kind as the first one named or written."""
        made = {event.path: event for event in self.artifacts}
        first = next((path for path in (*self.brief.outputs, *made) if path in made), "")
        return {path: event for path, event in made.items() if ending(path) == ending(first)}

    @cached_property
    def guides(self) -> dict[str, int]:
        """Return the guidance files with the sequence number at which they became visible."""
        found = {path: seq for path, seq in self.seen.items() if guide_like(path) and path not in self.brief.outputs}
        return {path: seq for path, seq in found.items() if path in self.brief.guides or not _plain_word(path)}

    @cached_property
    def checks(self) -> dict[str, int]:
        """Return the runnable checks with the sequence number at which they became visible."""
        return {path: seq for path, seq in self.seen.items() if runnable_check(path)}

    @cached_property
    def repository(self) -> bool:
        """Return whether the work is on a source repository: git is used, or its usual files are seen."""
        names = {path.rsplit("/", 1)[-1] for path in self.seen}
        told = _REPOSITORY_WORDS.search(self.brief.text[:20_000]) is not None
        return told or not _REPOSITORY.isdisjoint(names) or any(event.program == "git" for event in self.events)

    @property
    def last_turn(self) -> int:
        return self.calls[-1].turn if self.calls else 0

    def had_a_turn_after(self, event: Event) -> bool:
        """Return whether the agent could still act after an event: it continued, or chose to finish."""
        return self.finished or event.at < len(self.calls) - 1

    def said(self, after: int = 0) -> str:
        """Return the agent's own text from a turn on, in lower case."""
        return "\n".join(text for turn, text in self.words if turn >= after).lower()


def read_trace(task: Task, trajectory: Trajectory) -> Trace:
    """Parse a trajectory in one pass."""
    return _Reader(read_brief(task.instruction)).read(task, trajectory)


def _plain_word(path: str) -> bool:
    """Return whether a listed name has no extension and no capital, such as `standard`: it may be anything."""
    return path.islower() and not ending(path)


def _own_words(turn: Turn) -> str:
    """Return the agent's text without the calls that some harnesses repeat in it."""
    text = f"{turn.reasoning}\n{turn.text}"
    for call in turn.calls[:8]:
        for value in call.arguments.values() if isinstance(call.arguments, Mapping) else ():
            if isinstance(value, str) and len(value) > 3:
                text = text.replace(value, " ")
    return text.strip(" \n$`")


def _answer_to(call: ToolCall, place: int, turn: Turn, answers: Mapping[str, Observation]) -> Observation:
    """Return the observation of a call: by its id, else by position unless that one answers another call."""
    if call.id in answers and call.id:
        return answers[call.id]
    at_place = turn.observations[place] if place < len(turn.observations) else _NOTHING
    foreign = bool(call.id and at_place.call_id and at_place.call_id != call.id)
    return _NOTHING if foreign else at_place


@dataclass
class _Reader:
    """Collect events and learn which files exist, so that different spellings of a path are unified."""

    brief: Brief
    seen: dict[str, int] = field(default_factory=dict)
    listed: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    by_name: dict[str, list[str]] = field(default_factory=dict)
    writers: dict[str, str] = field(default_factory=dict)
    """The program that first wrote each file."""

    def read(self, task: Task, trajectory: Trajectory) -> Trace:
        for path in (*self.brief.inputs, *self.brief.outputs, *self.brief.guides, *self.brief.checks):
            self._canonical(path)
            self.seen[path] = -1
        words = []
        for number, turn in enumerate(trajectory.turns, start=1):
            if own := _own_words(turn):
                words.append((number, own))
            answers = {o.call_id: o for o in turn.observations if o.call_id}
            for i, call in enumerate(turn.calls):
                self._call(number, *acts_of_call(call), _answer_to(call, i, turn, answers))
        finished = trajectory.stop is StopReason.FINISHED or any(e.op is Op.FINISH for e in self.events)
        return Trace(
            self.brief, task.provided_skills, tuple(self.calls), tuple(self.events), tuple(words), self.seen,
            self.listed, finished,
        )  # fmt: skip

    def _call(self, turn: int, text: str, acts: Sequence[Act], observation: Observation) -> None:
        ops = frozenset(act.op for act in acts)
        answer = read_answer(observation, ops) if observation is not _NOTHING else ParsedAnswer()
        working = next((act for act in acts if act.op in (Op.RUN, Op.CHECK)), acts[0] if acts else None)
        first = len(self.events)
        for act in acts:
            # if a call works and then checks, a failure belongs to the check: the work before it succeeded
            failed = answer.failed and (act.op is Op.CHECK or Op.CHECK not in ops)
            for path in self._paths(act):
                self._add(turn, self._really(act.op, path, act.program), path, act, failed=failed)
        if working and Op.RUN in ops and not answer.failed and working.program not in READERS:
            done = {event.path for event in self.events[first:] if event.op is Op.WRITE}
            for path in dict.fromkeys(map(self._canonical, files_reported_written(answer.text))):
                if path not in done:
                    self._add(turn, Op.WRITE, path, working, failed=False)
        if working and Op.WRITE in ops and not answer.failed and _NUMBERED.search(answer.text):
            for path in [event.path for event in self.events[first:] if event.op is Op.WRITE]:
                self._add(turn, Op.READ, path, working, failed=False)  # an editor that shows what it wrote
        happened = frozenset(event.op for event in self.events[first:])
        self.calls.append(
            Call(len(self.calls), turn, text, working.program if working else "", happened, answer, first)
        )
        self._learn(acts, ops, answer)

    def _add(self, turn: int, op: Op, path: str, act: Act, *, failed: bool) -> None:
        event = Event(len(self.events), len(self.calls), turn, op, path, act.program, act.text, failed)
        self.events.append(event)
        if op is Op.WRITE:
            self.writers.setdefault(path, act.program)

    def _really(self, op: Op, path: str, program: str) -> Op:
        """Return WRITE if a program is given a requested output that no other program wrote before."""
        handed_over = op is Op.USE and path in self.brief.outputs and program not in READERS
        return Op.WRITE if handed_over and self.writers.get(path, program) == program else op

    def _paths(self, act: Act) -> Iterator[str]:
        """Return the files of an act: patterns expand to the known files they match, unknown words are no files."""
        if not act.path:
            yield ""
        elif any(c in act.path for c in "*?"):
            pattern = clean_path(act.path)
            candidates = islice(self.seen, _GLOB_REACH) if len(pattern) < 100 else ()
            matches = [path for path in candidates if fnmatchcase(path, pattern)]
            yield from matches or [pattern]
        elif act.op is not Op.USE or path_like(act.path) or clean_path(act.path) in self.seen:
            yield self._canonical(act.path)

    def _canonical(self, path: str) -> str:
        """Return one name for `in.csv`, `./in.csv` and `/app/in.csv`."""
        path = clean_path(path)
        known = self.by_name.setdefault(path.rsplit("/", 1)[-1], [])
        for other in known[:8]:
            if other == path or other.endswith("/" + path) or path.endswith("/" + other):
                return other
        known.append(path)
        return path

    def _learn(self, acts: Sequence[Act], ops: frozenset[Op], answer: ParsedAnswer) -> None:
        """Record the files that this call's answer made visible."""
        now = len(self.events)
        if Op.LIST in ops and not answer.failed:
            folders = [act.path for act in acts if act.op is Op.LIST]
            folder = clean_path(folders[0]) if len(folders) == 1 and folders[0] else ""
            for name in listed_files(answer.text, "" if "*" in folder else folder, alone=ops == {Op.LIST}):
                path = self._canonical(name)
                self.seen.setdefault(path, now)
                self.listed.setdefault(path, now)
        elif Op.READ in ops and not answer.failed and any(guide_like(act.path) for act in acts):
            named = read_brief(answer.text[:4000])
            for path in (*named.guides, *named.checks):
                self.seen.setdefault(self._canonical(path), now)
