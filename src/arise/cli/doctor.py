"""`arise doctor`: check that this machine is ready for a run. Heavy imports stay inside the command."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from arise.cli.output import AsJson, config_files, one_message, say, say_json

NOT_READY = 1
MARKS = {"ok": "✓", "warning": "!", "failure": "✗"}


def doctor(
    paths: Annotated[list[Path] | None, typer.Argument(help="The configuration you want to run.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Change one value: section.key=value.")] = None,
    runs: Annotated[Path, typer.Option("--run-dir", help="Where runs will be kept.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Check the machine and what a configuration needs: tasks, engine, model, endpoints; print a remedy per problem."""
    with one_message():
        from arise.compose.doctor import examine
        from arise.config.file import load_config

        findings = []
        for finding in examine(load_config(config_files(paths), overrides or []), runs):
            findings.append(finding)
            if not as_json:
                say(f" {MARKS[finding.level]} {finding.name:<11} {finding.said}")
                if finding.remedy:
                    say(f"   {'':<11} do: {finding.remedy}")
        failed = [finding for finding in findings if finding.level == "failure"]
        if as_json:
            say_json({"ready": not failed, "findings": [finding._asdict() for finding in findings]})
        else:
            say("not ready" if failed else f"ready: arise train {_words(paths or [], overrides or [])}".rstrip())
        if failed:
            raise typer.Exit(NOT_READY)


def _words(paths: list[Path], overrides: list[str]) -> str:
    """Return the checked arguments as a command line."""
    return shlex.join([*map(str, paths), *(word for change in overrides for word in ("--set", change))])
