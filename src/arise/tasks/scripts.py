"""Shell scripts of many tasks, read by bash without running them."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from arise.tasks.problem import TaskProblem

SECONDS = 600.0
_SAID = re.compile(r"(?P<path>.+?): line (?P<line>\d+): (?P<what>.+)")


def unreadable_scripts(scripts: Iterable[Path]) -> list[TaskProblem]:
    """Return one problem for each script that bash cannot parse; one bash per script, started by one xargs."""
    paths = [str(path) for path in scripts]
    if not paths:
        return []
    line = ["xargs", "--null", "--max-args=1", "bash", "-n", "--"]
    done = subprocess.run(line, input="\0".join(paths), capture_output=True, text=True, timeout=SECONDS, check=False)
    found: dict[str, TaskProblem] = {}
    for said in done.stderr.splitlines():
        if (match := _SAID.match(said)) and match["path"] in paths:
            what = f"is not readable by bash: line {match['line']}: {match['what']}"
            found.setdefault(match["path"], TaskProblem(Path(match["path"]), what, "correct the syntax"))
    return list(found.values())
