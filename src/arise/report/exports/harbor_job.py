"""An evaluation as a job folder in Harbor's format: one trial folder per attempt, written when it ends.

A stopped evaluation resumes from this folder: a trial with a result is not run again, unless infrastructure ended it.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arise import __version__
from arise.report.exports.atif import trajectory_document
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

    def trial(self, task: TaskSpec, attempt: int) -> Path:
        """Return the folder of one attempt."""
        return self.folder / f"{task.directory.name}__{attempt:07d}"

    def finished(self, task: TaskSpec, attempt: int) -> dict[str, Any] | None:
        """Return the result of a finished attempt; None if it is missing or infrastructure ended it."""
        try:
            found = json.loads((self.trial(task, attempt) / "result.json").read_text(**_TEXT))
        except (OSError, ValueError):
            return None
        return None if found.get("exception_info") else dict(found)

    def start(self, suite: str, tasks: int) -> None:
        """Write the job's configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = {"job_name": self.label, "n_attempts": self.attempts, "agents": [self._agent()], "datasets": [suite]}
        _write(self.folder / "config.json", config | {"n_tasks": tasks})

    def _agent(self) -> dict[str, Any]:
        return {"name": "arise", "version": __version__, "model_name": self.model}

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

    def _result(self, task: TaskSpec, attempt: int, rollout: Rollout, started: str) -> dict[str, Any]:
        fault = {
            "exception_type": "InfrastructureFault",
            "exception_message": redact(rollout.fault),
            "exception_traceback": "",
            "occurred_at": now(),
        }
        agent = self._agent()
        return {
            "task_name": task.task.id,
            "trial_name": self.trial(task, attempt).name,
            "source": task.metadata.get("source"),
            "agent_info": {"name": agent["name"], "version": agent["version"], "model_info": {"name": self.model}},
            "agent_result": {"n_output_tokens": rollout.trajectory.generated_tokens},
            "verifier_result": None if rollout.reward is None else {"rewards": {"reward": rollout.reward}},
            "exception_info": fault if rollout.fault else None,
            "started_at": started,
            "finished_at": now(),
            "arise": {
                "attempt": attempt,
                "domain": task.task.domain,
                "success": rollout.success,
                "stop": rollout.trajectory.stop.value,
                "reason": redact(rollout.reason),
                "provided_skills": list(task.task.provided_skills),
            },
        }

    def end(self, facts: dict[str, Any]) -> None:
        """Write the result of the job."""
        _write(self.folder / "result.json", {"finished_at": now(), "stats": facts})


def _write(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value, indent=1) + "\n", **_TEXT)
    draft.replace(path)
