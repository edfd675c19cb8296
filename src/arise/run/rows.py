"""Row types that the queries return: iterations, draws, groups, tasks, rollouts and attempts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from arise.run.numbering import iteration_of
from arise.run.why import Mass
from arise.types import Draw


@dataclass(frozen=True)
class Iteration:
    """A committed iteration; `k` is its index in the tables, from 0, `number` is displayed, from 1."""

    k: int
    at: float
    metrics: Mapping[str, float]
    checkpoint: str | None

    @property
    def number(self) -> int:
        return iteration_of(self.k)


class SlotRow(NamedTuple):
    """A batch slot and why it got this task; `mass` is the ledger's for the draw's cell."""

    k: int
    slot: int
    draw: Draw
    mass: Mass | None = None

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


class CellRow(NamedTuple):
    """S and F of a (task type, capability) at the end of iteration k."""

    k: int
    task_type: str
    capability: str
    passes: float
    fails: float


class CellDraws(NamedTuple):
    """The number of adaptive draws of a cell in a range of iterations."""

    task_type: str
    capability: str
    draws: int


class GroupRow(NamedTuple):
    """The G rollouts of one slot; incomplete while fewer than `size` have a reward."""

    k: int
    slot: int
    task_id: str
    size: int
    rewarded: int
    successes: int
    reward: float | None

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)

    @property
    def outcome(self) -> str:
        if self.rewarded < self.size:
            return "incomplete"
        return {0: "all-fail", self.size: "all-pass"}.get(self.successes, "mixed")


class GroupSums(NamedTuple):
    """Sums over all groups of an iteration; the four kinds of outcome add up to `groups`."""

    k: int
    groups: int
    rollouts: int
    rewarded: int
    successes: int
    all_fail: int
    mixed: int
    all_pass: int
    incomplete: int

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


@dataclass(frozen=True)
class TaskRow:
    """A training task with the outcomes of its groups so far."""

    id: str
    domain: str
    task_types: tuple[str, ...]
    instruction: str
    groups: int = 0
    rewarded: int = 0
    successes: int = 0
    last_k: int | None = None


class RolloutRow(NamedTuple):
    """A rollout as shown in lists; advantages are None if its group had no learning signal."""

    id: str
    k: int
    task_id: str
    reward: float | None
    success: bool | None
    stop: str
    fault: str
    turns: int
    generated_tokens: int
    advantage: float | None
    task_advantage: float | None
    rubric_advantage: float | None

    @property
    def iteration(self) -> int:
        return iteration_of(self.k)


class AttemptRow(NamedTuple):
    """One held-out attempt."""

    label: str
    task_id: str
    attempt: int
    k: int
    domain: str
    task_type: str
    success: bool | None
    reward: float | None
    stop: str
    fault: str
    skill_bytes: int
    verdicts: Mapping[str, str]


class Session(NamedTuple):
    """A process that locked the run, and how many iterations were committed before it."""

    at: float
    owner: str
    version: str
    committed: int
