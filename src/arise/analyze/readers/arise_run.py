"""ARISE's own run folders: every stored rollout with its verifier's verdict."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from arise.analyze.files import head
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.errors import AriseError
from arise.types import Rollout, StopReason, Task


class AriseRunReader:
    """Read a folder with `run.db` from one snapshot, even while the run is active."""

    name = "arise-run"

    def detect(self, path: Path) -> bool:
        return (
            path.is_dir() and head(path / "run.db").startswith(b"SQLite format 3") and (path / "config.toml").is_file()
        )

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        from arise.run.reader import RunReader

        try:
            with RunReader.open(path) as run:
                tasks = {task.id: task for task in run.tasks()}
                model = str(run.config().get("model", {}).get("name") or "small")
                for iteration in run.iterations():
                    for row in run.rollouts(k=iteration.k, limit=-1):
                        stored = run.trajectory(row.id)
                        task = tasks.get(row.task_id)
                        if stored is None:
                            yield Skipped(f"{path}#{row.id}", "the stored trajectory is gone")
                            continue
                        told = options.instructions.get(row.task_id, task.instruction if task else "")
                        yield _found(stored.whole(), Task(row.task_id, told), f"{path}#{row.id}", model, path.name)
        except (AriseError, OSError, ValueError) as error:
            yield Skipped(str(path), f"run folder cannot be read: {str(error).splitlines()[0]}")


def _found(rollout: Rollout, task: Task, place: str, model: str, group: str) -> Found:
    notes: Mapping[str, int] = {"no trajectory": 1} if not rollout.trajectory.turns else {}
    return Found(
        rollout.trajectory, task, _outcome(rollout), place, AriseRunReader.name,
        model=model, agent="arise", group=group,
        attempt=rollout.trajectory.id, notes=notes,
    )  # fmt: skip


def _outcome(rollout: Rollout) -> Outcome:
    if rollout.fault:
        return Outcome(Triage.INFRASTRUCTURE, reason=rollout.fault)
    if rollout.success is None:
        return verdict(rollout.reward)
    if rollout.trajectory.stop is StopReason.TIME_LIMIT and not rollout.success:
        return Outcome(Triage.TIME_LIMIT, False, rollout.reward, "time limit")
    return Outcome(Triage.VALID, rollout.success, rollout.reward, rollout.reason)
