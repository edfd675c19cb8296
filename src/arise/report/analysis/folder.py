"""An analysis as `arise analyze --out` left it: its document, its attempts, and the files they were read from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from arise.analyze.found import Found, Options
from arise.analyze.scan import Scan
from arise.errors import AriseError, Exit
from arise.report.analysis.facts import FORMAT, VERSION
from arise.report.analysis.outputs import ATTEMPTS, DOCUMENT
from arise.text.secrets import redact


@dataclass(frozen=True)
class AttemptLine:
    """One line of `attempts.jsonl`; `turn_of` has the turn that shows each present behaviour."""

    id: str
    source: str
    form: str
    task: str
    model: str
    triage: str
    passed: bool | None
    reward: float | None
    reason: str
    turns: int
    behaviours: Mapping[str, bool]
    turn_of: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class StoredAnalysis:
    """The document and the attempts of one analysis."""

    folder: Path
    facts: Mapping[str, Any]
    attempts: tuple[AttemptLine, ...]

    def line(self, attempt_id: str) -> AttemptLine | None:
        return next((line for line in self.attempts if line.id == attempt_id), None)

    def quotes_of(self, source: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return (gap, quote) of every quote from one attempt."""
        return [(gap, quote) for gap in self.facts["gaps"] for quote in quotes_in(gap) if quote["source"] == source]


def quotes_in(gap: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all quotes of a behaviour, those of passes last."""
    return [*gap["quotes"], *gap["quotes_in_passes"]]


def attempt_id(source: str) -> str:
    """Return a short id of an attempt for addresses, the same in every analysis of the same files."""
    return "a" + blake2b(source.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def is_analysis(folder: Path) -> bool:
    """Return whether a folder contains an analysis."""
    return (folder / DOCUMENT).is_file()


def read_facts(folder: Path) -> dict[str, Any]:
    """Read the document of an analysis; refuse another format or version by name."""
    try:
        facts = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT or facts["version"] != VERSION:
            raise ValueError(f"format {facts['format']} version {facts['version']}, expected {FORMAT} {VERSION}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder / DOCUMENT, error) from None
    return dict(facts)


def read_attempts(folder: Path) -> tuple[AttemptLine, ...]:
    """Read the attempts of an analysis."""
    try:
        rows = [json.loads(line) for line in (folder / ATTEMPTS).read_text(encoding="utf-8").splitlines()]
        return tuple(
            AttemptLine(
                attempt_id(row["source"]), row["source"], row["format"], row["task"], row["model"], row["triage"],
                row["passed"], row["reward"], row["reason"], row["turns"], dict(row["behaviours"]),
                dict(row["turn_of"]),
            )
            for row in rows
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(folder / ATTEMPTS, error) from None


def stored_verdicts(folder: Path) -> dict[tuple[str, str], bool]:
    """Return whether each behaviour was present, by (source, behaviour)."""
    lines = read_attempts(folder)
    return {(line.source, name): bool(here) for line in lines for name, here in line.behaviours.items()}


def open_analysis(folder: Path) -> StoredAnalysis:
    """Return an analysis as it is on disk now; it is parsed again only when it has changed."""
    try:
        stamps = tuple((folder / name).stat().st_mtime_ns for name in (DOCUMENT, ATTEMPTS))
    except OSError as error:
        raise _unreadable(folder, error) from None
    return _opened(folder, stamps)


@lru_cache(maxsize=2)
def _opened(folder: Path, _stamps: tuple[int, ...]) -> StoredAnalysis:
    return StoredAnalysis(folder, read_facts(folder), read_attempts(folder))


def paths_of(folder: Path, facts: Mapping[str, Any]) -> list[Path]:
    """Return the analysed paths."""
    return [found_at(folder, path) for path in facts["paths"]]


def found_at(folder: Path, given: str) -> Path:
    """Return a path as given to the analysis, or next to the folder of the analysis if it exists only there."""
    path = Path(given)
    other = folder.absolute().parent / path
    return other if not path.exists() and other.exists() else path


def fields_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the field map that the analysis was made with."""
    return dict(facts.get("map", {}))


@lru_cache(maxsize=2)
def read_again(analysis: StoredAnalysis, source: str) -> Found | None:
    """Return an attempt, read again from its file; None if the file is gone or holds it no more."""
    paths = paths_of(analysis.folder, analysis.facts)
    if not all(path.exists() for path in paths):
        return None
    scan = Scan(paths, Options(fields_of(analysis.facts)), only=source)
    return next((found for found in scan if redact(found.source) == source), None)


def _unreadable(path: Path, error: Exception) -> AriseError:
    return AriseError(
        "analysis", Exit.CONFIG, f"{path} cannot be read: {error}", "nothing was read",
        "make it again: arise analyze PATH --out FOLDER",
    )  # fmt: skip
