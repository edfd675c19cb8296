"""The input of a habit, one attempt, and its finding."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from arise.analyst.acts import Op
from arise.analyst.tool_kinds import SHELL, kind_of
from arise.analyst.trace import Call, Trace
from arise.types import Observation, Task, Trajectory, Turn

USER = "user"
"""`call_id` of an observation that is a message of the user."""
LONGEST = 20_000
"""Characters of one text that are searched."""
FILE_NAME = re.compile(r"\.[A-Za-z]\w{0,4}$")
"""The end of a name of a file, or of a dotted name in code."""


@dataclass(frozen=True)
class HabitFinding:
    """`HabitFinding(True, "third", "turn 7 ...", (7, 9))`: all turns that show it, none if it is absent."""

    present: bool
    miss: str = ""
    detail: str = ""
    turns: tuple[int, ...] = ()
    quote: str = ""
    """The words that show it; empty to let the report choose a line of the first turn."""


@dataclass(frozen=True)
class Habit:
    """`find` returns None if the attempt gave no opportunity for the habit."""

    id: str
    find: "Callable[[Scene], HabitFinding | None]"


@dataclass(frozen=True)
class Scene:
    """One attempt: as recorded, and parsed."""

    task: Task
    trajectory: Trajectory
    trace: Trace
    given: str = ""
    """Text shown to the agent besides the instruction; only identifiers are looked up in it."""

    @cached_property
    def said(self) -> tuple[tuple[int, str], ...]:
        """Return turn and text of every message that the agent wrote; neither code blocks nor reasoning."""
        spoken = ((number, _FENCED.sub(" ", turn.text[:LONGEST])) for number, turn in enumerate(self._turns, start=1))
        return tuple((number, text) for number, text in spoken if text.strip())

    @cached_property
    def person(self) -> tuple[tuple[int, str], ...]:
        """Return every later message of the user, with the turn that it answers."""
        return tuple(
            (number, seen.text)
            for number, turn in enumerate(self._turns, start=1)
            for seen in turn.observations
            if seen.call_id == USER
        )

    @cached_property
    def results(self) -> tuple[tuple[int, Observation], ...]:
        """Return every result of a tool, with its turn."""
        return tuple(
            (number, seen)
            for number, turn in enumerate(self._turns, start=1)
            for seen in turn.observations
            if seen.call_id != USER
        )

    @cached_property
    def failed_calls(self) -> tuple[Call, ...]:
        """Return the calls whose answer reports a failure; a search that finds nothing has not failed."""
        return tuple(call for call in self.trace.calls if call.answer.failed)

    @cached_property
    def shell(self) -> bool:
        """Return whether the agent works in a shell, where it can look at everything."""
        return self.trace.repository or any(kind_of(call.name) == SHELL for turn in self._turns for call in turn.calls)

    def shows(self, name: str) -> bool:
        """Return whether the task, a call or a result has something of a name; of a file more than its name."""
        listed = re.compile(
            rf"{re.escape(name)}[\"'`]?[:,]" if FILE_NAME.search(name) else re.escape(name), re.IGNORECASE
        )
        if listed.search(self.task.instruction) or name.lower() in self._called:
            return True
        return any(listed.search(seen.text) for _, seen in self.results)

    @cached_property
    def _called(self) -> str:
        """Return the text of all calls, in lower case."""
        return "\n".join(str(dict(call.arguments)).lower() for turn in self._turns for call in turn.calls)

    @property
    def _turns(self) -> tuple[Turn, ...]:
        return self.trajectory.turns

    @property
    def closing(self) -> tuple[int, str]:
        """Return turn and text of the agent's last message; `(0, "")` if it wrote none."""
        return self.said[-1] if self.said else (0, "")

    def edits(self) -> list[int]:
        """Return the turns that changed a file."""
        return [event.turn for event in self.trace.of(Op.WRITE) if not event.failed]


_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def absent() -> HabitFinding:
    """Return the finding of an opportunity that was handled well."""
    return HabitFinding(False)
