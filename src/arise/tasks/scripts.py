"""Shell scripts of many tasks, read by bash without running them."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from arise.tasks.problem import TaskProblem

SECONDS = 600.0
_SAID = re.compile(r"(?P<path>.+?): line (?P<line>\d+): (?P<what>.+)")


def unreadable_scripts(scripts: Iterable[Path]) -> list[TaskProblem]:
    """Return one problem for each script that bash cannot parse; equal scripts are read once."""
    copies: dict[bytes, list[Path]] = {}
    for path in scripts:
        copies.setdefault(path.read_bytes(), []).append(path)
    said = _parsed([paths[0] for paths in copies.values()])
    return [
        TaskProblem(path, f"is not readable by bash: {said[paths[0]]}", "correct the syntax")
        for paths in copies.values()
        if paths[0] in said
        for path in paths
    ]


def _parsed(paths: list[Path]) -> dict[Path, str]:
    """Return what bash says about the scripts that it cannot parse; it runs none of them."""
    if not paths:
        return {}
    line = ["xargs", "--null", "--max-args=1", f"--max-procs={os.cpu_count() or 1}", "bash", "-n", "--"]
    names = {str(path): path for path in paths}
    done = subprocess.run(
        line, input="\0".join(names), capture_output=True, text=True, timeout=SECONDS, check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    )  # fmt: skip
    found: dict[Path, str] = {}
    for said in done.stderr.splitlines():
        if (match := _SAID.match(said)) and match["path"] in names:
            found.setdefault(names[match["path"]], f"line {match['line']}: {match['what']}")
    return found
