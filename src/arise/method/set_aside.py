"""Beyond the paper: set aside tasks whose groups stay incomplete because of faults, and retry them now and then.

An incomplete group is no attempt (App. "Coverage and Discovery"), so a task that can never complete one would keep the
largest discovery weight for ever. One mechanism for every sampler: what it names is not available for a draw.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from arise.types import Group


@dataclass(frozen=True)
class Faulty:
    """A task's incomplete groups in a row; set aside after iteration `since`, it may be drawn again in `until`."""

    in_a_row: int
    since: int | None = None
    until: int | None = None


class SetAside:
    """The tasks of a run that are set aside; `after = 0` never does so. Iterations count from 0."""

    def __init__(self, tasks: int = 0, after: int = 0, retry_every: int = 20) -> None:
        self.tasks, self.after, self.retry_every = tasks, after, retry_every
        self.faulty: dict[str, Faulty] = {}

    def away(self, iteration: int) -> list[str]:
        """Return the tasks set aside in an iteration, latest return first."""
        until = {task: found.until for task, found in self.faulty.items() if found.until is not None}
        return sorted((task for task in until if iteration < until[task]), key=lambda task: (-until[task], task))

    def unavailable(self, iteration: int, count: int) -> list[str]:
        """Return the tasks to exclude from a batch of `count`; never so many that the batch shrinks."""
        return self.away(iteration)[: max(0, self.tasks - count)]

    def observe(self, iteration: int, groups: Sequence[Group]) -> None:
        """Update from an iteration's groups: a complete group clears its task, an incomplete one counts against it."""
        for group in groups:
            task = group.task.id
            if group.complete:
                self.faulty.pop(task, None)
                continue
            in_a_row = 1 + (self.faulty[task].in_a_row if task in self.faulty else 0)
            if self.after and in_a_row >= self.after:
                self.faulty[task] = Faulty(in_a_row, iteration, iteration + 1 + self.retry_every)
            else:
                self.faulty[task] = Faulty(in_a_row)

    def to_dict(self) -> dict[str, list[int | None]]:
        """Return the whole state as JSON values."""
        return {task: list(astuple(found)) for task, found in self.faulty.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue exactly where `to_dict` was taken."""
        self.faulty = {task: Faulty(*found) for task, found in saved.items()}
