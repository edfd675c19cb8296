"""`arise compare`: methods x seeds with the same budget, and one report of the results."""

import json
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from arise.cli import figures
from arise.cli.output import AsJson, default_command, one_message

app = typer.Typer(
    cls=default_command("run"),
    no_args_is_help=True,
    help="Compare methods with the same budget: `arise compare BASE.toml --methods all --seeds 0-4 --out DIR`.",
)


@app.command(
    "run",
    epilog="Example: arise compare run configs/embedded.toml --methods arise,outcome-only --seeds 0-4 --out runs/both",
)
def run(
    bases: Annotated[
        list[Path],
        typer.Argument(
            metavar="BASE",
            help="The base configuration, several files merged left to right; methods/ next to the first holds one "
            "overlay per method.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the comparison; the same one continues it.")],
    methods: Annotated[str, typer.Option("--methods", help="Comma-separated names, or `all`.")] = "all",
    seeds: Annotated[str, typer.Option("--seeds", help="For example 0-4 or 0,2,5-7.")] = "0-4",
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Change one value of all runs.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=0, help="Runs at a time; 0 means one per core.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run methods x seeds with the same budget and write the report; run the same command again to continue."""
    with one_message():
        from arise.report.comparison import plan as planning

        comparison = planning.plan(
            bases, planning.parse_methods(methods), planning.parse_seeds(seeds), overrides or [], out
        )
        _run(comparison, jobs or _cores(), as_json)


@app.command("report", epilog="Example: arise compare report runs/both")
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `arise compare` made.")], as_json: AsJson = False
) -> None:
    """Write the report again from the run folders, finished or not."""
    with one_message():
        _report(folder, as_json)


def _report(folder: Path, as_json: bool) -> None:
    """Write the report; without matplotlib, skip the figures and print a notice."""
    from arise.errors import AriseError
    from arise.report.comparison.report import write_report

    try:
        draw = figures.drawing()
    except AriseError as error:
        draw = None
        typer.echo(f"no figures: {error}", err=True)
    written = write_report(folder, draw)
    typer.echo(json.dumps(written.summary, indent=2) if as_json else written.text)


def _run(comparison: Any, jobs: int, as_json: bool) -> None:
    from filelock import FileLock, Timeout

    from arise.errors import AriseError, Exit
    from arise.observe.messages import shown_by
    from arise.report.comparison import plan as planning
    from arise.report.comparison.document import counted
    from arise.report.comparison.progress import Progress
    from arise.report.comparison.runner import Runner

    folder = comparison.folder
    folder.mkdir(parents=True, exist_ok=True)
    threads = max(1, _cores() // jobs)
    try:
        with FileLock(folder / "comparison.lock").acquire(timeout=0), Progress(to_stderr=as_json) as progress:
            planning.write_plan(comparison, _facts(jobs, threads))
            for line in [*planning.budget_lines(comparison), f"{jobs} at a time, {counted(threads, 'thread')} each"]:
                progress.tell(line)
            with shown_by(progress.tell):
                given_up = Runner(comparison, jobs, threads).run(progress.show)
    except Timeout:
        raise AriseError(
            "locked", Exit.LOCKED, f"{folder} is being worked on by another `arise compare`", "nothing was done", "wait"
        ) from None
    _report(folder, as_json)
    if given_up:
        names = ", ".join(job.member.name for job in given_up)
        raise AriseError(
            "compare",
            Exit.ENGINE,
            f"{len(given_up)} runs failed and were not retried: {names}",
            "the report leaves them out",
            f"read {folder / 'logs'}, fix the cause and run the same command again",
        )


def _facts(jobs: int, threads: int) -> dict[str, Any]:
    """Return the exact command and facts about the machine, for the report."""
    from arise import __version__

    return {
        "command": shlex.join(["arise", *sys.argv[1:]]),
        "written": time.strftime("%Y-%m-%d %H:%M:%S"),
        "jobs": jobs,
        "threads": threads,
        "machine": {
            "processor": _processor(),
            "cores": _cores(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "arise": __version__,
        },
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
