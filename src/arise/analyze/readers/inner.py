"""Read the agent's own log in a trial folder: Claude Code, Codex, mini-swe-agent, ..."""

from pathlib import Path

from arise.analyze.found import Found, Options

SUFFIXES = {".json", ".jsonl", ".txt", ".traj", ".log", ".zst"}
MOST_FILES = 200


def inner_attempt(folder: Path, options: Options) -> Found | None:
    """Return the longest attempt that any file reader finds below a folder; None if there is none."""
    from arise.analyze.readers import FILE_READERS

    best: Found | None = None
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    for path in files[:MOST_FILES]:
        reader = next((reader for reader in FILE_READERS if reader.detect(path)), None)
        if reader is None:
            continue
        for item in reader.read(path, options):
            longer = isinstance(item, Found) and len(item.trajectory.turns) > (
                len(best.trajectory.turns) if best else 0
            )
            best = item if isinstance(item, Found) and longer else best
    return best
