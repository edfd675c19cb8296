"""Export a run: tables as Parquet or JSON Lines, ATIF trajectories, SKILL.md packages. Keys are redacted."""

from collections.abc import Callable
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.report.exports.atif import write_trajectories
from arise.report.exports.skills import write_skills
from arise.report.exports.tables import write_jsonl, write_parquet
from arise.run.reader import RunReader

FORMATS: dict[str, Callable[[RunReader, Path], list[Path]]] = {
    "parquet": write_parquet,
    "jsonl": write_jsonl,
    "atif": write_trajectories,
    "skills": write_skills,
}


def export(run: Path, form: str, out: Path) -> list[Path]:
    """Write a run in one of `FORMATS` into a folder and return the files; the run may still be active."""
    with RunReader.open(run) as reader:
        try:
            out.mkdir(parents=True, exist_ok=True)
            return FORMATS[form](reader, out)
        except OSError as error:
            raise AriseError(
                "export",
                Exit.STORAGE,
                f"cannot write to {out}: {error.strerror or error}",
                "the export is not complete; the run is untouched",
                "give another folder with --out",
            ) from None
