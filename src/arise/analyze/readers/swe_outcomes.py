"""Outcomes of coding benchmarks from files next to the trajectories: `report.json`, `results.json`, summaries."""

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from arise.analyze.files import load_optional
from arise.analyze.found import Outcome, Triage, verdict

LEVELS = 4
LARGEST = 20_000_000
DEEPEST, MOST_FOLDERS = 5, 20_000
"""Limits of the search for reports below an evaluation folder; beyond the second, none of them counts."""
_EVALUATION = re.compile(r"eval|^logs?$|report", re.IGNORECASE)
_PASSED, _LISTS = ("resolved_ids", "resolved"), ("resolved_ids", "resolved", "unresolved_ids", "completed_ids")
_UNVERIFIED = (
    "error_ids",
    "no_logs",
    "incomplete_ids",
    "infra_error_ids",
    "test_timeout",
    "install_fail",
    "reset_failed",
)


def outcome_of(instance_id: str, path: Path, exit_status: str) -> Outcome:
    """Return the outcome of an instance from side files near its trajectory; submitting is not success."""
    for folder in _folders(path):
        found = _report(instance_id, folder) or _listed(instance_id, folder) or _evaluated(instance_id, folder, path)
        if found:
            return found
    said = f"exit status {exit_status or 'unknown'}; no report.json or results.json names {instance_id}"
    return Outcome(Triage.MISSING, reason=said)


def _folders(path: Path) -> Iterator[Path]:
    folder = path.parent
    for _ in range(LEVELS):
        yield folder
        if folder == folder.parent or (folder / ".git").exists():
            return
        folder = folder.parent


def _report(instance_id: str, folder: Path) -> Outcome | None:
    """Read `report.json` of the evaluation harness: `{id: {"resolved": true}}` or that value alone."""
    for file in (
        folder / f"logs/{instance_id}/report.json", folder / f"{instance_id}/report.json", folder / "report.json"
    ):  # fmt: skip
        report = load_optional(file)
        if not isinstance(report, Mapping):
            continue
        entry = report.get(instance_id, report if file.parent.name == instance_id else None)
        resolved = entry.get("resolved") if isinstance(entry, Mapping) else None
        if isinstance(resolved, bool):
            return verdict(float(resolved), str(file.name))
    return None


def _evaluated(instance_id: str, folder: Path, path: Path) -> Outcome | None:
    """Read the reports that an evaluation wrote next to the trajectories: `*/run_evaluation/RUN/MODEL/ID/report.json`.

    If the trajectory is in the folder of a run, only reports below a folder of that name count.
    """
    own = {part.lower() for part in path.parts[len(folder.parts) : -1]} - {instance_id.lower()}
    if len(own) > 1:
        return None  # too far away: it may be the evaluation of something else
    reports = _reports(folder).get(instance_id, ())
    near = [r for r in reports if not own or own & {part.lower() for part in r.parts[len(folder.parts) :]}]
    verdicts = {file: value for file in near if (value := _resolved(file, instance_id)) is not None}
    if len(set(verdicts.values())) > 1:
        return Outcome(Triage.MISSING, reason=f"{len(verdicts)} reports on {instance_id} disagree")
    return next((verdict(float(value), file.name) for file, value in verdicts.items()), None)


def _resolved(file: Path, instance_id: str) -> bool | None:
    report = load_optional(file)
    entry = report.get(instance_id, report) if isinstance(report, Mapping) else None
    resolved = entry.get("resolved") if isinstance(entry, Mapping) else None
    return resolved if isinstance(resolved, bool) else None


@lru_cache(maxsize=64)
def _reports(folder: Path) -> Mapping[str, tuple[Path, ...]]:
    """Return every `report.json` in the evaluation folders of a folder, by the name of its own folder."""
    found: dict[str, list[Path]] = {}
    visited = 0
    for root in sorted(child for child in folder.iterdir() if child.is_dir() and _EVALUATION.search(child.name)):
        for place, folders, files in os.walk(root):
            here = Path(place)
            folders[:] = sorted(folders) if len(here.relative_to(root).parts) < DEEPEST else []
            if "report.json" in files:
                found.setdefault(here.name, []).append(here / "report.json")
            visited += 1
            if visited > MOST_FOLDERS:
                return {}
    return {name: tuple(files) for name, files in found.items()}


def _listed(instance_id: str, folder: Path) -> Outcome | None:
    """Look up an instance in a summary; one that it does not mention has no outcome."""
    for lists in _summaries(folder):
        if any(instance_id in lists.get(name, ()) for name in _PASSED):
            return verdict(1.0, "listed as resolved")
        for name in _UNVERIFIED:
            if instance_id in lists.get(name, ()):
                return Outcome(Triage.UNVERIFIED, reason=f"listed under {name}")
        known = [name for name, ids in lists.items() if instance_id in ids]
        if known or "resolved" in lists:  # the short form lists only successes and exceptions
            return verdict(0.0, f"listed under {known[0]}" if known else "not among the resolved")
    return None


@lru_cache(maxsize=256)
def _summaries(folder: Path) -> tuple[dict[str, frozenset[str]], ...]:
    found = []
    candidates = [*folder.glob("*.json"), *folder.glob("results/*.json"), *folder.glob("evaluation*/*.json")]
    for file in sorted(candidates)[:200]:
        if file.name.endswith(".traj.json") or file.stat().st_size > LARGEST or not _may_list(file):
            continue
        value = load_optional(file)
        if isinstance(value, Mapping) and any(isinstance(value.get(name), list) for name in _LISTS):
            found.append({name: _names(ids) for name, ids in value.items() if isinstance(ids, list)})
    return tuple(found)


def _may_list(file: Path) -> bool:
    with file.open("rb") as stream:
        return b"resolved" in stream.read(2_000_000)


def _names(ids: list[Any]) -> frozenset[str]:
    return frozenset(str(item) for item in ids if isinstance(item, str))
