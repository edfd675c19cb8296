"""Harbor trial folders: `result.json`, the agent's trajectory, and the verifier's output."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, as_mapping, is_pointer, load, load_optional, text_of
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.analyze.readers.atif import is_atif, model_of, read_document
from arise.analyze.readers.inner import inner_attempt
from arise.types import Trajectory

TIME_LIMITS = {"AgentTimeoutError"}
VERIFIER_FAULTS = {
    "VerifierTimeoutError", "RewardFileNotFoundError", "RewardFileEmptyError", "VerifierOutputParseError",
    "AddTestsDirError", "DownloadVerifierDirError", "VerifierError",
}  # fmt: skip
AGENT_FAULTS = {
    "NonZeroAgentExitCodeError", "ContextLengthExceededError", "OutputLengthExceededError", "AgentError",
    "ContextWindowExceededError",
}  # fmt: skip
_TESTS_RAN = re.compile(
    r"test session starts|collected \d+ item|\b(?:PASSED|FAILED)\b|\d+ (?:passed|failed)\b|ok \d+ -"
)
_NO_TESTS = re.compile(
    r"could not resolve host|failed to (?:download|fetch)|connection (?:refused|timed out|reset)|temporary failure"
    r"|network is unreachable|command not found|no such file or directory|unable to (?:fetch|locate|connect)"
    r"|error: (?:failed|could not)|curl: \(\d+\)|tls|certificate",
    re.IGNORECASE,
)


class HarborReader:
    """Read a trial folder; a job folder is the parent of its trials."""

    name = "harbor"

    def detect(self, path: Path) -> bool:
        if not path.is_dir() or not (path / "result.json").is_file():
            return False
        parts = [(path / name).exists() for name in ("agent", "verifier", "trial.log", "steps")]
        return any(parts) and (path / "config.json").is_file()

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            result = load(path / "result.json")
        except Unreadable as error:
            yield Skipped(str(path / "result.json"), str(error))
            return
        if not isinstance(result, Mapping) or "task_name" not in result:
            yield Skipped(str(path / "result.json"), "no result of a trial: task_name is absent")
            return
        task_id = str(result["task_name"])
        name = str(result.get("trial_name") or path.name)
        conversation, model, ready = _trajectory(path, options)
        info = as_mapping(result.get("agent_info"))
        stated = as_mapping(info.get("model_info")).get("name")
        trajectory = ready or conversation.trajectory(name, task_id)
        task = conversation.task(task_id, options.instructions, str(result.get("source") or ""))
        yield Found(
            Trajectory(name, task_id, trajectory.turns, trajectory.stop, trajectory.system_prompt),
            task,
            triage(result, path),
            str(path),
            self.name,
            checksum=str(result.get("task_checksum") or ""),
            model=str(stated or model or ""),
            agent=str(info.get("name") or ""),
            group=str(result.get("source") or ""),
            attempt=name,
            notes=conversation.notes,
        )


def _trajectory(path: Path, options: Options) -> tuple[Conversation, str, Trajectory | None]:
    """Return the conversation of a trial: ATIF if present (one per step of a multi-step task), else the agent's log.

    A trial without a readable log keeps its outcome and has no turns.
    """
    into, model = Conversation(), ""
    folders = [path / "agent", *sorted((path / "steps").glob("*/agent"))]
    for folder in folders:
        file = folder / "trajectory.json"
        if file.is_file() and is_pointer(file):
            into.note("trajectories behind Git LFS pointers")
            continue
        document = load_optional(file)
        if is_atif(document):
            part = read_document(document, folder)
            model = model or model_of(document)
            into = part if not into.drafts else _joined(into, part)
    if into.drafts:
        return into, model, None
    inner = next(filter(None, (inner_attempt(folder, options) for folder in folders)), None)
    if inner is None:
        into.note("no trajectory")
        return into, model, None
    into.notes.update(inner.notes)
    into.instruction = inner.task.instruction
    return into, inner.model, inner.trajectory


def _joined(first: Conversation, second: Conversation) -> Conversation:
    """Join the steps of a multi-step trial into one attempt; later instructions become user messages."""
    first.add_user(second.instruction)
    first.drafts += second.drafts
    for what, count in second.notes.items():
        first.note(what, count)
    return first


def triage(result: Mapping[str, Any], path: Path) -> Outcome:
    """Triage the recorded reward: a reward of 0 is no verdict if the tests never ran."""
    reward = _reward(as_mapping(as_mapping(result.get("verifier_result")).get("rewards")))
    fault = as_mapping(result.get("exception_info"))
    kind, said = str(fault.get("exception_type") or ""), str(fault.get("exception_message") or "")[:200]
    reason = f"{kind}: {said}".strip(": ")
    if reward is not None and reward >= 1.0 - 1e-6:
        return verdict(reward, reason)
    if kind in VERIFIER_FAULTS:
        return Outcome(Triage.UNVERIFIED, reward=reward, reason=reason)
    if kind in TIME_LIMITS:
        return Outcome(Triage.TIME_LIMIT, None if reward is None else False, reward, reason)
    if kind and kind not in AGENT_FAULTS:
        return Outcome(Triage.INFRASTRUCTURE, reward=reward, reason=reason)
    if reward is None:
        return Outcome(Triage.MISSING, reason=reason or "no reward on file")
    if why := _never_ran(path):
        return Outcome(Triage.UNVERIFIED, reward=reward, reason=why)
    return verdict(reward, reason)


def _never_ran(path: Path) -> str:
    """Return why the tests of a failed trial never ran; empty if they ran or nothing is known."""
    folders = [path / "verifier", *sorted((path / "steps").glob("*/verifier"))]
    if not any(folder.is_dir() for folder in folders):
        return ""
    for folder in folders:
        tests = as_mapping(as_mapping(load_optional(folder / "ctrf.json")).get("results")).get("tests")
        if tests:
            return ""
        output = folder / "test-stdout.txt"
        said = text_of(output)
        if said is None:
            if output.is_file():
                return ""  # a Git LFS pointer: the tests may have run
            continue
        if _TESTS_RAN.search(said):
            return ""
        if trouble := _NO_TESTS.search(said):
            line = next(line for line in said.splitlines() if trouble.group() in line)
            return f"no test ran: {line.strip()[:160]}"
        if said.strip():
            return ""  # unknown test script: missing test output proves nothing
        return "no test ran: the verifier printed nothing"
    return ""


def _reward(rewards: Mapping[str, Any]) -> float | None:
    value = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    return float(value) if isinstance(value, int | float) else None
