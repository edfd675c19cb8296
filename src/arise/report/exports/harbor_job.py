"""An evaluation as a job folder in Harbor's format: one trial folder per attempt, written when it ends.

A stopped evaluation resumes from this folder: a trial with a result is not run again, unless infrastructure ended it.
"""

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arise import __version__
from arise.evaluation.suite import fault_of
from arise.harbor.trials import TrialOutcome
from arise.report.exports.atif import trajectory_document
from arise.rollouts.verifier import SUCCESS
from arise.text.secrets import redact
from arise.types import Rollout, TaskSpec

_TEXT = {"encoding": "utf-8"}


def now() -> str:
    """Return the current time in the format of results."""
    return datetime.now(UTC).isoformat()


@dataclass(frozen=True)
class Job:
    """The folder of one evaluation — `Job(Path("runs/first/jobs/after"), "after", "small", 3)`."""

    folder: Path
    label: str
    model: str
    attempts: int
    agent: str = "arise"

    def trial(self, task: TaskSpec, attempt: int) -> Path:
        """Return the folder of one attempt."""
        return self.folder / f"{task.directory.name}__{attempt:07d}"

    def finished(self, task: TaskSpec, attempt: int) -> dict[str, Any] | None:
        """Return the result of a finished attempt; None if it is missing or infrastructure ended it."""
        try:
            found = json.loads((self.trial(task, attempt) / "result.json").read_text(**_TEXT))
        except (OSError, ValueError):
            return None
        return None if "arise" not in found or fault_of(found) else dict(found)

    def start(self, suite: str, tasks: int) -> None:
        """Write the job's configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = {"job_name": self.label, "n_attempts": self.attempts, "agents": [self._agent()], "datasets": [suite]}
        _write(self.folder / "config.json", config | {"n_tasks": tasks})

    def _agent(self) -> dict[str, Any]:
        return {"name": self.agent, "version": __version__, "model_name": self.model}

    def save(self, task: TaskSpec, attempt: int, rollout: Rollout, started: str) -> dict[str, Any]:
        """Write one trial; write its result last, so that a trial without one is known to be unfinished."""
        folder = self.trial(task, attempt)
        for name in ("agent", "verifier"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        document = trajectory_document(rollout, task.task.instruction, self.model)
        _write(folder / "agent" / "trajectory.json", document)
        (folder / "verifier" / "test-stdout.txt").write_text(redact(rollout.verifier_output), **_TEXT)
        if rollout.reward is not None:
            (folder / "verifier" / "reward.txt").write_text(f"{rollout.reward:g}\n", **_TEXT)
        _write(folder / "config.json", {"task": {"path": str(task.directory)}, "agent": self._agent()})
        result = self._result(task, attempt, rollout, started)
        _write(folder / "result.json", result)
        return result

    def adopt(
        self, task: TaskSpec, attempt: int, written: Path, result: dict[str, Any], earned: TrialOutcome, started: str
    ) -> dict[str, Any]:
        """Move a trial that Harbor wrote into the job and add to its result what ARISE made of it."""
        folder = self.trial(task, attempt)
        shutil.rmtree(folder, ignore_errors=True)
        if written.is_dir():
            (written / "result.json").unlink(missing_ok=True)
            shutil.move(written, folder)
        folder.mkdir(exist_ok=True)
        own = {"task_name": task.task.id, "started_at": started, "finished_at": now(), "verifier_result": None}
        about = self._about(task, attempt, (earned.reward or 0.0) >= SUCCESS, earned.fault, earned.reason)
        found = {**own, "exception_info": self._exception(earned.fault) if earned.fault else None, **result}
        found |= {"trial_name": folder.name, "arise": about}
        _write(folder / "result.json", found)
        return found

    def _about(self, task: TaskSpec, attempt: int, success: bool | None, fault: str, reason: str) -> dict[str, Any]:
        """Return what ARISE knows of a trial beyond Harbor's own fields."""
        return {
            "attempt": attempt,
            "domain": task.task.domain,
            "success": success,
            "fault": redact(fault),
            "reason": redact(reason),
            "provided_skills": list(task.task.provided_skills),
        }

    def _exception(self, fault: str) -> dict[str, str]:
        return {
            "exception_type": "InfrastructureFault",
            "exception_message": redact(fault),
            "exception_traceback": "",
            "occurred_at": now(),
        }

    def _result(self, task: TaskSpec, attempt: int, rollout: Rollout, started: str) -> dict[str, Any]:
        about = self._about(task, attempt, rollout.success, rollout.fault, rollout.reason)
        agent = self._agent()
        return {
            "task_name": task.task.id,
            "trial_name": self.trial(task, attempt).name,
            "source": task.metadata.get("source"),
            "agent_info": {"name": agent["name"], "version": agent["version"], "model_info": {"name": self.model}},
            "agent_result": {"n_output_tokens": rollout.trajectory.generated_tokens},
            "verifier_result": None if rollout.reward is None else {"rewards": {"reward": rollout.reward}},
            "exception_info": self._exception(rollout.fault) if rollout.fault else None,
            "started_at": started,
            "finished_at": now(),
            "arise": about | {"stop": rollout.trajectory.stop.value},
        }

    def end(self, facts: dict[str, Any]) -> None:
        """Write the result of the job."""
        _write(self.folder / "result.json", {"finished_at": now(), "stats": facts})


def _write(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value, indent=1) + "\n", **_TEXT)
    draft.replace(path)
