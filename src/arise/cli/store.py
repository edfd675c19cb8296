"""`arise verify` and `arise export`. Heavy imports stay inside the commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, RunFolder, one_message, say, say_json

SHOWN_PROBLEMS = 5


class ExportFormat(StrEnum):
    """The output formats of `arise export`."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    ATIF = "atif"
    SKILLS = "skills"
    HF = "hf"
    PEFT = "peft"


def verify(run: RunFolder, as_json: AsJson = False) -> None:
    """Verify a run: digests of files and rows, and the invariants of pool, ledger and batches."""
    with one_message():
        from dataclasses import asdict

        from arise.errors import Exit
        from arise.run.folder import require_run
        from arise.run.verify import verify as verified

        require_run(run)
        checks = verified(run)
        wrong = [check for check in checks if not check.passed]
        if as_json:
            facts = [asdict(check) | {"passed": check.passed} for check in checks]
            say_json({"run": str(run), "passed": not wrong, "checks": facts})
        else:
            say("\n".join(_line(check.name, check.said, check.problems) for check in checks))
            said = f"{len(wrong)} of {len(checks)} checks failed" if wrong else f"all {len(checks)} checks passed"
            say(f"{run}: {said}")
        if wrong:
            raise typer.Exit(Exit.STORAGE)


def export(
    run: RunFolder,
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="Tables (parquet, jsonl), ATIF v1.8 trajectories, SKILL.md packages, the trained model as a Hugging "
            "Face folder (hf), or its adapter (peft).",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="A folder; RUN/export/FORMAT by default.")] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", min=0, help="For hf and peft: the checkpoint; the last by default, 0 the start."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export a run for other tools, or its trained model; keys in its text are redacted."""
    with one_message():
        from arise.observe.waits import bars
        from arise.text.numbers import size as size_text

        folder = out or run / "export" / form.value
        write = _model if form in (ExportFormat.HF, ExportFormat.PEFT) else _record
        with bars():
            written = write(run, form, folder, at)
        size = sum(path.stat().st_size for path in written)
        if as_json:
            say_json({"folder": str(folder), "files": [str(path) for path in written], "bytes": size})
        else:
            say(f"{folder}: {len(written)} files, {size_text(size)}")


def _record(run: Path, form: ExportFormat, folder: Path, at: int | None) -> list[Path]:
    from arise.report.exports import export as exported

    if at is not None:
        raise typer.BadParameter(f"--at chooses a checkpoint, --format {form.value} writes the whole run")
    return exported(run, form.value, folder)


def _model(run: Path, form: ExportFormat, folder: Path, at: int | None) -> list[Path]:
    from arise.errors import AriseError, Exit
    from arise.run.folder import require_run

    require_run(run)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AriseError(
            "export",
            Exit.STORAGE,
            f"{folder} exists and is not an empty folder",
            "nothing was written",
            "name another folder with --out",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    import asyncio

    from arise.compose.trained import export_model

    asyncio.run(export_model(run, form.value, folder, at))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _line(name: str, said: str, problems: tuple[str, ...]) -> str:
    if not problems:
        return f"PASS  {name:<13} {said}"
    lines = [f"FAIL  {name:<13} {len(problems)} problems", *(f"      - {text}" for text in problems[:SHOWN_PROBLEMS])]
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"      - and {len(problems) - SHOWN_PROBLEMS} more, see --json")
    return "\n".join(lines)
