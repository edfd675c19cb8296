"""Held-out attempts: every task M times, without skills; infrastructure failures are reported with the score."""

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arise.errors import AriseError, Exit
from arise.ports import Judge
from arise.rollouts.collect import Collector
from arise.run.facts.score import Evaluation, score
from arise.run.labels import belongs_to_the_run
from arise.run.store import RunStore
from arise.text.progress import Progress
from arise.types import Attempt, Pair, Pool, Rollout, Task, TaskSpec
from arise.types.codec import from_json, to_json

log = logging.getLogger(__name__)

RAW_FOLDER = "evaluations"
_LABEL = re.compile(r"(?=.{1,100}$)\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


@dataclass(frozen=True)
class Evaluator:
    """The tasks, the agent and the number of attempts; `rubrics` judge unguided attempts and are never shown."""

    collector: Collector
    tasks: Sequence[TaskSpec]
    attempts: int
    store: RunStore
    judge: Judge | None
    rubrics: Pool

    async def take(self, label: str, iteration: int) -> Evaluation:
        """Run and record N x M attempts: rows for the score, and a file with the full transcripts."""
        attempts = await self._try(label, iteration, ())
        found = await self.judge_again(label, attempts)
        require_outcome(label, attempts)
        return found

    async def take_guided(self, label: str, iteration: int, shown: Sequence[Pair]) -> list[Attempt]:
        """Run the same attempts with skills in the prompt; judge and save them, but not as an evaluation."""
        attempts = await self._judge(await self._try(label, iteration, shown))
        write_raw(self.store.folder, label, attempts)
        require_outcome(label, attempts)
        return attempts

    async def _try(self, label: str, iteration: int, shown: Sequence[Pair]) -> list[Attempt]:
        tries = [(task, number) for task in self.tasks for number in range(self.attempts)]
        names = [f"eval/{label}/{task.task.id}/{number}" for task, number in tries]
        with Progress(log, f"evaluation {label}: attempts", len(tries)) as wait:

            async def attempt(task: TaskSpec, name: str) -> Rollout:
                rollout = await self.collector.attempt(task, shown, name)
                wait.add()
                return rollout

            rollouts = await asyncio.gather(
                *(attempt(task, name) for (task, _), name in zip(tries, names, strict=True))
            )
        leaks = self._leaked_bytes(rollouts)
        return [
            _attempt(label, iteration, task.task, number, rollout, leak)
            for (task, number), rollout, leak in zip(tries, rollouts, leaks, strict=True)
        ]

    async def judge_again(self, label: str, attempts: Sequence[Attempt] | None = None) -> Evaluation:
        """Judge recorded attempts by all rubrics known now, without running them again."""
        judged = await self._judge(attempts if attempts is not None else read_raw(self.store.folder, label))
        write_raw(self.store.folder, label, judged)
        self.store.save_attempts([_row(attempt) for attempt in judged])
        return score(label, self.store)

    async def _judge(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        known = {task.task.id: task.task for task in self.tasks}
        if self.judge is None or not self.rubrics.pairs:
            return list(attempts)
        with Progress(log, "judging attempts", len(attempts)) as wait:
            return await asyncio.gather(
                *(self._judged(self.judge, known[attempt.task_id], attempt, wait) for attempt in attempts)
            )

    async def _judged(self, judge: Judge, task: Task, attempt: Attempt, wait: Progress) -> Attempt:
        if not attempt.fault:
            judgment = await judge.judge(task, attempt.rollout, self.rubrics)
            rollout = replace(attempt.rollout, judgment=judgment)
            attempt = replace(attempt, verdicts=judgment.verdicts, rollout=rollout)
        wait.add()
        return attempt

    def _leaked_bytes(self, rollouts: Sequence[Rollout]) -> list[int]:
        """Return the bytes of evolved skills in each prompt, which must all be 0."""
        texts = self.store.skill_texts()
        return [sum(len(t.encode()) for t in texts if t in r.trajectory.system_prompt) for r in rollouts]


def _attempt(label: str, iteration: int, task: Task, number: int, rollout: Rollout, leaked: int) -> Attempt:
    return Attempt(
        label=label,
        task_id=task.id,
        attempt=number,
        iteration=iteration,
        domain=task.domain,
        task_type=task.task_types[0] if task.task_types else "",
        success=rollout.success,
        reward=None if rollout.reward is None else float(rollout.reward),
        stop=rollout.trajectory.stop,
        fault=rollout.fault,
        skill_bytes=leaked,
        rollout=replace(rollout, trajectory=replace(rollout.trajectory, rows=())),
        instruction=task.instruction,
    )


def _row(attempt: Attempt) -> tuple[Any, ...]:
    """Return the attempt as a row of the store."""
    head = attempt.label, attempt.task_id, attempt.attempt, attempt.iteration, attempt.domain, attempt.task_type
    success = None if attempt.success is None else int(attempt.success)
    tail = attempt.reward, attempt.stop.value, attempt.fault, attempt.skill_bytes
    return (*head, success, *tail, json.dumps(to_json(attempt.verdicts)))


def require_outcome(label: str, attempts: Sequence[Attempt]) -> None:
    """Raise an error if infrastructure ended every attempt, because there is no score."""
    faults = Counter(attempt.fault for attempt in attempts if attempt.success is None)
    if not attempts or sum(faults.values()) < len(attempts):
        return
    raise AriseError(
        "evaluation",
        Exit.ENGINE,
        f"{label!r} has no score: infrastructure ended all {len(attempts)} attempts, "
        f"most often by: {faults.most_common(1)[0][0]}",
        "the lost attempts are on record; none of them counts as a failure of the policy",
        "fix the cause and run the same command again",
    )


def require_label(label: str) -> None:
    """Refuse a label that is not a safe file name."""
    if not _LABEL.fullmatch(label):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"{label!r} cannot be the name of an evaluation",
            "nothing was tried",
            "use at most 100 letters, digits, dashes and dots, not beginning with a dot",
        )


def require_own_label(label: str) -> None:
    """Refuse also a label that is reserved for the run's own evaluations."""
    require_label(label)
    if belongs_to_the_run(label):
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"{label!r} is the name of an evaluation that the run made itself",
            "nothing was tried, nothing was replaced",
            "give another name with --label",
        )


def raw_file(folder: Path, label: str) -> Path:
    """Return the path of an evaluation's attempts, a JSON Lines file."""
    require_label(label)
    return folder / RAW_FOLDER / f"{label}.jsonl"


def write_raw(folder: Path, label: str, attempts: Sequence[Attempt]) -> None:
    """Write the file atomically."""
    path = raw_file(folder, label)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text("".join(json.dumps(to_json(attempt)) + "\n" for attempt in attempts), encoding="ascii")
    draft.replace(path)


def read_attempt(folder: Path, label: str, task_id: str, number: int) -> Attempt | None:
    """Read one attempt of an evaluation, without decoding the others; None if it is not on file."""
    if not _LABEL.fullmatch(label) or not (path := raw_file(folder, label)).is_file():
        return None
    task = f'"task_id": {json.dumps(task_id)}, "attempt": {number},'
    with path.open(encoding="ascii") as lines:
        for line in lines:
            if task in line[: len(task) + len(label) + 40]:
                return from_json(Attempt, json.loads(line))
    return None


def read_raw(folder: Path, label: str) -> list[Attempt]:
    """Read the attempts that `write_raw` wrote."""
    return [
        from_json(Attempt, json.loads(line))
        for line in raw_file(folder, label).read_text(encoding="ascii").splitlines()
    ]
