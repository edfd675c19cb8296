"""What a reader yields: a trajectory with its task and triaged outcome, or the reason for skipping it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from arise.types import Task, Trajectory


class Triage(StrEnum):
    """Whether a recorded outcome is a valid verdict on the agent."""

    VALID = "valid"
    INFRASTRUCTURE = "infrastructure"
    UNVERIFIED = "verifier never ran"
    TIME_LIMIT = "time limit"
    MISSING = "missing"


@dataclass(frozen=True)
class Outcome:
    """`Outcome(Triage.VALID, passed=False, reward=0.0)`; `reward` is the recorded number, valid or not.

    `passed` is None unless a verifier judged the attempt: always for VALID, sometimes for TIME_LIMIT.
    """

    triage: Triage
    passed: bool | None = None
    reward: float | None = None
    reason: str = ""


MISSING = Outcome(Triage.MISSING)


def verdict(reward: float | None, reason: str = "") -> Outcome:
    """Return the outcome of a completed verifier: passed at a reward of 1 (within rounding), failed below."""
    if reward is None or reward != reward:
        return Outcome(Triage.MISSING, reason=reason or "no reward on file")
    return Outcome(Triage.VALID, reward >= 1.0 - 1e-6, reward, reason)


@dataclass(frozen=True, eq=False)
class Found:
    """One attempt; `trajectory.task_id` and `task.id` are the harness's own task name."""

    trajectory: Trajectory
    task: Task
    outcome: Outcome
    source: str
    """File and position in it, e.g. `job.zip!trial/result.json` or `runs.jsonl:17`."""
    form: str
    """The reader that read it, e.g. `harbor`."""
    checksum: str = ""
    """Digest of the task's files if the harness records one; only attempts with equal checksums are paired."""
    model: str = ""
    agent: str = ""
    group: str = ""
    """Job, dataset or repository of the task; used as stratum if each task was tried once."""
    attempt: str = ""
    """The harness's own name of this attempt, if any."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Countable remarks of the reader, e.g. `{"images": 2}`."""


@dataclass(frozen=True)
class Skipped:
    """A trajectory that could not be read: `Skipped("a.jsonl:3", "truncated line")`."""

    source: str
    reason: str


Item = Found | Skipped
NO_MESSAGES = "no messages: name their field with --map messages=NAME"


@dataclass(frozen=True)
class Options:
    """User options: the field map of `--map`, instructions by task id of `--tasks`, and `--outcomes`."""

    fields: Mapping[str, str] = field(default_factory=dict)
    instructions: Mapping[str, str] = field(default_factory=dict)
    outcomes: str = ""
    """A table of outcomes: its path, or its name in the folder of each attempt."""


class Reader(Protocol):
    """One format. `detect` checks content, never only the name; `read` yields attempts one at a time."""

    name: str

    def detect(self, path: Path) -> bool: ...

    def read(self, path: Path, options: Options) -> Iterator[Item]: ...
