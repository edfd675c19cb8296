"""`arise verify`, `arise export`, `arise runs`: what lies in run folders. Heavy imports live inside the commands."""

import typer

from arise.cli_output import AsJson, RunFolder, one_message, say, say_json

SHOWN_PROBLEMS = 5


def register(app: typer.Typer) -> None:
    """Add the commands to the `arise` command."""
    app.command(epilog="Example: arise verify runs/first")(verify)


def verify(run: RunFolder, as_json: AsJson = False) -> None:
    """Check a run: digests of files and rows, and the invariants of pool, ledger and batches."""
    with one_message():
        from dataclasses import asdict

        from arise.errors import Exit
        from arise.run_folder import require_run
        from arise.store.verify import verify as verified

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


def _line(name: str, said: str, problems: tuple[str, ...]) -> str:
    if not problems:
        return f"PASS  {name:<13} {said}"
    lines = [f"FAIL  {name:<13} {len(problems)} problems", *(f"      - {text}" for text in problems[:SHOWN_PROBLEMS])]
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"      - and {len(problems) - SHOWN_PROBLEMS} more, see --json")
    return "\n".join(lines)
