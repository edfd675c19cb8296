"""Outcomes of coding benchmarks from files next to the trajectories: `report.json`, `results.json`, summaries."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from arise.analyze.files import load_optional
from arise.analyze.found import Outcome, Triage, verdict

LEVELS = 4
LARGEST = 20_000_000
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
        found = _report(instance_id, folder) or _listed(instance_id, folder)
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
