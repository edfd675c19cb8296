"""Inspect logs: `.eval` archives, read one sample at a time, and `.json` logs."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, load, mentions
from arise.analyze.found import Found, Item, Options, Outcome, Skipped, Triage, verdict
from arise.analyze.messages import add_messages
from arise.analyze.zipped import read_member
from arise.types import StopReason

ATTACHMENT = "attachment://"
_STOPS = {
    "time": StopReason.TIME_LIMIT, "working": StopReason.TIME_LIMIT, "message": StopReason.TURN_LIMIT,
    "token": StopReason.TOKEN_LIMIT, "context": StopReason.CONTEXT_LIMIT,
}  # fmt: skip
_GRADES = {"C": 1.0, "CORRECT": 1.0, "I": 0.0, "INCORRECT": 0.0, "P": 0.5, "N": 0.0}


class InspectReader:
    """Read a log of one evaluation; every sample and epoch is an attempt."""

    name = "inspect"

    def detect(self, path: Path) -> bool:
        if not path.is_file():
            return False
        if path.suffix == ".eval" or (path.suffix == ".zip" and zipfile.is_zipfile(path)):
            return _is_log(path)
        return path.suffix == ".json" and mentions(path, '"eval"', '"status"') and mentions(path, '"task"', '"version"')

    def read(self, path: Path, options: Options) -> Iterator[Item]:
        try:
            if path.suffix == ".json":
                log = load(path)
                for sample in (log.get("samples") or ()) if isinstance(log, Mapping) else ():
                    yield self._sample(log, sample, path, f"{path}#{sample.get('id')}", options)
                return
            yield from self._archive(path, options)
        except (Unreadable, zipfile.BadZipFile, OSError, AttributeError, KeyError) as error:
            yield Skipped(str(path), str(error) if isinstance(error, Unreadable) else "damaged Inspect log")

    def _archive(self, path: Path, options: Options) -> Iterator[Item]:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            log = json.loads(read_member(archive, header)) if header else {}
            for name in sorted(name for name in names if name.startswith("samples/") and name.endswith(".json")):
                place = f"{path}!{name}"
                try:
                    sample = json.loads(read_member(archive, name))
                    yield self._sample(log, sample, path, place, options)
                except (ValueError, zipfile.BadZipFile, EOFError, AttributeError, TypeError):
                    yield Skipped(place, "sample cannot be read")

    def _sample(self, log: Mapping[str, Any], sample: dict[str, Any], path: Path, place: str, options: Options) -> Item:
        about = log.get("eval") or {}
        into = Conversation()
        attached = sample.get("attachments") or {}
        pool = (sample.get("events_data") or {}).get("messages") if not sample.get("messages") else None
        add_messages(into, _attached(sample.get("messages") or pool or [], attached))
        if not into.instruction:
            into.add_user(sample.get("input"))
        group = str(about.get("task") or path.stem)
        task_id = f"{group}/{sample.get('id')}"
        outcome = _outcome(sample, options, into)
        limit = str((sample.get("limit") or {}).get("type", ""))
        stop = StopReason.FAULT if sample.get("error") else _STOPS.get(limit, StopReason.FINISHED)
        name = str(
            sample.get("uuid") or f"{about.get('run_id', path.stem)}/{sample.get('id')}/{sample.get('epoch', 1)}"
        )
        task = into.task(task_id, options.instructions, group)
        return Found(
            into.trajectory(name, task_id, stop), task, outcome, place, self.name,
            model=str(about.get("model") or ""), agent=str(about.get("solver") or ""), group=group, attempt=name,
            notes=into.notes,
        )  # fmt: skip


def _is_log(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return path.suffix == ".eval"  # count a damaged log once
    return bool(names & {"header.json", "_journal/start.json"}) or path.suffix == ".eval"


def _attached(value: Any, attachments: Mapping[str, str], depth: int = 0) -> Any:
    """Replace `attachment://` references by their content."""
    if isinstance(value, str):
        return attachments.get(value[len(ATTACHMENT) :], value) if value.startswith(ATTACHMENT) else value
    if depth > 8 or not attachments:
        return value
    if isinstance(value, list):
        return [_attached(item, attachments, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: _attached(item, attachments, depth + 1) for key, item in value.items()}
    return value


def _outcome(sample: Mapping[str, Any], options: Options, into: Conversation) -> Outcome:
    """Return the verdict of the scorer that `--map outcome=NAME` names, else of the first one."""
    if error := sample.get("error"):
        said = error.get("message", "") if isinstance(error, Mapping) else str(error)
        return Outcome(Triage.INFRASTRUCTURE, reason=f"sample error: {str(said)[:160]}")
    scores = sample.get("scores") or ({"score": sample["score"]} if sample.get("score") else {})
    wanted = options.fields.get("outcome")
    if wanted and wanted in scores:
        scores = {wanted: scores[wanted]}
    if not scores:
        return Outcome(Triage.UNVERIFIED, reason="no score: the scorer did not run")
    if len(scores) > 1:
        into.note("samples with several scores")
    name, score = next(iter(scores.items()))
    reward = _number(score.get("value") if isinstance(score, Mapping) else score)
    if reward is None:
        return Outcome(Triage.MISSING, reason=f"score {name} is no verdict: name another with --map outcome=SCORER")
    found = verdict(reward, f"score {name}")
    limit = str((sample.get("limit") or {}).get("type", ""))
    if _STOPS.get(limit) is StopReason.TIME_LIMIT and not found.passed:
        return Outcome(Triage.TIME_LIMIT, found.passed, reward, f"{limit} limit")
    return found


def _number(value: object) -> float | None:
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        if value.upper() in _GRADES:
            return _GRADES[value.upper()]
        try:
            return float(value)
        except ValueError:
            return None
    return None
