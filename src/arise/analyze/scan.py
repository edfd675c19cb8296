"""Scan paths for attempts: walk folders and archives, select readers, and count skipped files by reason."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from arise.analyze.archives import is_archive, unpacked
from arise.analyze.files import Unreadable, fields_of, is_pointer, mentions
from arise.analyze.found import NO_MESSAGES, Found, Item, Options, Reader, Skipped
from arise.analyze.outcome_tables import OutcomeTables
from arise.analyze.readers import FILE_READERS, FOLDER_READERS
from arise.types import Trajectory

CANDIDATES = {".json", ".jsonl", ".ndjson", ".eval", ".traj", ".zst", ".db"}
"""Suffixes of files that may contain trajectories; other files are read only if a reader requests them."""
IGNORED_FOLDERS = {".git", "node_modules", "__pycache__", ".venv"}
DEEPEST_ARCHIVE = 3
_PLACE = re.compile(r"(?::\d+)?(?:#[^/]*)?$")


@dataclass
class Coverage:
    """Counts of a scan, for the first line of every report."""

    read: int = 0
    duplicates: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """One example source per reason."""
    forms: Counter[str] = field(default_factory=Counter)
    unrecognised: Counter[str] = field(default_factory=Counter)
    """Candidate files that no reader recognises, by suffix."""
    fields: dict[str, str] = field(default_factory=dict)
    """One example of them per suffix, with the names of its fields."""
    outcome_rows: int = 0
    """Rows with a verdict in the user's tables of outcomes, and the attempts that have theirs from one."""
    outcome_rows_used: int = 0

    @property
    def found(self) -> int:
        return self.read + self.duplicates + sum(self.skipped.values())

    def ignore(self, path: Path) -> None:
        """Count a file in no known format."""
        self.unrecognised[path.suffix] += 1
        if path.suffix not in self.fields and (named := fields_of(path)):
            self.fields[path.suffix] = f"{path.name}: {', '.join(named)}"

    def skip(self, source: str, reason: str) -> None:
        self.skipped[reason] += 1
        self.examples.setdefault(reason, source)


class Scan:
    """Iterate to get every attempt once, in a fixed order; `coverage` is updated meanwhile.

    With `only`, the source of one attempt, files that cannot hold it are left out; others beside it are still yielded.
    """

    def __init__(self, paths: Sequence[Path], options: Options | None = None, only: str = "") -> None:
        self.paths, self.options, self.only, self.coverage = paths, options or Options(), only, Coverage()
        self.tables = OutcomeTables(self.options.outcomes, self.options) if self.options.outcomes else None
        self._seen: dict[bytes, str] = {}
        self._root = _Root(Path(), "", "")

    def __iter__(self) -> Iterator[Found]:
        for path in self.paths:
            self._root = _Root.of(path, len(self.paths) > 1)
            for item in map(self._root.shown, map(self._judged, self._walk(path, 0))):
                if isinstance(item, Skipped):
                    self.coverage.skip(item.source, item.reason)
                elif self._repeated(item):
                    self.coverage.duplicates += 1
                else:
                    self.coverage.read += 1
                    self.coverage.forms[item.form] += 1
                    yield item

    def _judged(self, item: Item) -> Item:
        """Return an attempt with the outcome that a table of the user has for it."""
        if self.tables is None or not isinstance(item, Found):
            return item
        filled = self.tables.filled(item)
        self.coverage.outcome_rows, self.coverage.outcome_rows_used = self.tables.rows, self.tables.used
        return filled

    def _repeated(self, found: Found) -> bool:
        """Return whether the same attempt was read before from another file, by name and content.

        Equal attempts within one file count as separate attempts.
        """
        file = _PLACE.sub("", found.source)
        return self._seen.setdefault(attempt_digest(found), file) != file

    def _walk(self, path: Path, depth: int) -> Iterator[Item]:
        if self.only and not depth and not self._root.may_hold(path, self.only):
            return
        if path.is_dir():
            if mentions(path / "analysis.json", '"arise-analysis"'):
                return  # one of our own reports, written below the analysed folder
            reader = next((reader for reader in FOLDER_READERS if reader.detect(path)), None)
            if reader is not None:
                yield from self._read(reader, path)
                return
            for child in sorted(path.iterdir()):
                if child.name not in IGNORED_FOLDERS and not (child.is_symlink() and child.is_dir()):
                    yield from self._walk(child, depth)
        elif path.is_file():
            yield from self._file(path, depth)

    def _file(self, path: Path, depth: int) -> Iterator[Item]:
        if path.suffix in CANDIDATES and is_pointer(path):
            yield Skipped(str(path), "Git LFS pointer: the content was not downloaded (git lfs pull)")
            return
        reader = next((reader for reader in FILE_READERS if reader.detect(path)), None)
        if reader is not None:
            yield from self._read(reader, path)
        elif is_archive(path) and depth < DEEPEST_ARCHIVE:
            yield from self._archive(path, depth)
        elif path.suffix in CANDIDATES:
            self.coverage.ignore(path)

    def _read(self, reader: Reader, path: Path) -> Iterator[Item]:
        """Yield the items of a reader; an unexpected exception ends the file, not the scan."""
        try:
            yield from self._conversations(reader.read(path, self.options), path)
        except Exception as fault:  # boundary to untrusted files: one of them must not end the scan
            yield Skipped(str(path), f"{reader.name} reader failed: {type(fault).__name__}: {fault}"[:200])

    def _conversations(self, items: Iterator[Item], path: Path) -> Iterator[Item]:
        """Yield the items of a file; one without a single conversation is no file of trajectories, unless mapped."""
        others, first, any_read = 0, "", False
        for item in items:
            if not any_read and isinstance(item, Skipped) and item.reason == NO_MESSAGES:
                others, first = others + 1, first or item.source
                continue
            any_read = True
            yield item
        if not any_read and others and "messages" not in self.options.fields:
            self.coverage.ignore(path)
        else:
            yield from (Skipped(first, NO_MESSAGES) for _ in range(others))

    def _archive(self, path: Path, depth: int) -> Iterator[Item]:
        try:
            with unpacked(path) as folder:
                for item in self._walk(folder, depth + 1):
                    yield _renamed(item, str(folder), f"{path}!")
        except Unreadable as error:
            yield Skipped(str(path), str(error))


@dataclass(frozen=True)
class _Root:
    """How sources below a path of the user are written: relative to it, after its name if there are several."""

    path: Path
    start: str
    name: str

    @classmethod
    def of(cls, path: Path, several: bool) -> "_Root":
        if not path.is_dir():
            return cls(path, f"{path.parent}/", "")
        return cls(path, "" if path == Path() else f"{path}/", f"{path.name}/" if several and path.name else "")

    def shown(self, item: Item) -> Item:
        """Return an item with its source written so."""
        if not item.source.startswith(self.start):
            return item
        return replace(item, source=self.name + item.source[len(self.start) :])

    def may_hold(self, path: Path, source: str) -> bool:
        """Return whether a file or folder can be the one that a source is in."""
        return path == self.path or source.startswith(self.name + str(path).removeprefix(self.start))


def _renamed(item: Item, folder: str, archive: str) -> Item:
    """Rename an item of an archive, so that the temporary folder is never shown."""

    def shown(text: str) -> str:
        return text.replace(f"{folder}/", archive).replace(folder, archive)

    if isinstance(item, Skipped):
        return Skipped(shown(item.source), item.reason)
    trajectory, task = item.trajectory, item.task
    named = replace(trajectory, id=shown(trajectory.id), task_id=shown(trajectory.task_id))
    return replace(item, source=shown(item.source), trajectory=named, task=replace(task, id=shown(task.id)))


def attempt_digest(found: Found) -> bytes:
    """Return a digest of an attempt's content, or of its source if it has no turns.

    Attempts of different models or with different outcomes are never the same, however little they say.
    """
    state = blake2b(digest_size=16)
    trajectory: Trajectory = found.trajectory
    state.update(
        f"{trajectory.task_id}\0{found.attempt}\0{found.model}\0{found.outcome.passed}\0"
        f"{found.task.instruction[:2000]}\0".encode("utf-8", "surrogatepass")
    )
    if not trajectory.turns:
        state.update(found.source.encode("utf-8", "surrogatepass"))
    for turn in trajectory.turns:
        state.update(turn.text.encode("utf-8", "surrogatepass"))
        for call in turn.calls:
            state.update(f"{call.name}\0{call.arguments}\0{call.id}".encode("utf-8", "surrogatepass"))
        for seen in turn.observations:
            state.update(seen.text.encode("utf-8", "surrogatepass"))
    return state.digest()
