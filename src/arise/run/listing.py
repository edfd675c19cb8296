"""Runs at a glance: what `arise runs` lists."""

import time
from pathlib import Path
from typing import NamedTuple

from arise.errors import AriseError
from arise.run.folder import CONFIG_FILE, held
from arise.run.reader import RunReader


class RunLine(NamedTuple):
    """A run in one line; `wrong` says why it cannot be read."""

    name: str
    committed: int = 0
    planned: int | None = None
    pass_rate: float | None = None
    before: float | None = None
    after: float | None = None
    pool: int = 0
    running: bool = False
    last_commit: float | None = None
    wrong: str = ""

    def cells(self) -> list[str]:
        """As columns for a person."""
        if self.wrong:
            return [self.name, "-", "-", "-", "-", "cannot be read", self.wrong.splitlines()[0]]
        done = self.planned is not None and self.committed >= self.planned
        state = "running" if self.running else "finished" if done else "stopped"
        rates = [_percent(rate) for rate in (self.before, self.after) if rate is not None]
        when = "" if self.last_commit is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(self.last_commit))
        progress = f"{self.committed}/{self.planned if self.planned is not None else '?'}"
        return [self.name, progress, _percent(self.pass_rate), " to ".join(rates) or "-", str(self.pool), state, when]


def list_runs(folder: Path) -> list[RunLine]:
    """Every run directly below a folder, by name."""
    found = sorted(path for path in folder.glob("*") if (path / CONFIG_FILE).is_file()) if folder.is_dir() else []
    return [_line(path) for path in found]


def _line(path: Path) -> RunLine:
    try:
        with RunReader.open(path) as run:
            iterations = run.iterations()
            rates = {}
            for label in ("before", "after"):
                tried = [attempt.success for attempt in run.attempts(label) if attempt.success is not None]
                rates[label] = sum(tried) / len(tried) if tried else None
            last = iterations[-1] if iterations else None
            planned = run.config().get("train", {}).get("iterations")
            rate = last.metrics.get("pass_rate") if last else None
            return RunLine(
                path.name,
                len(iterations),
                None if planned is None else int(planned),
                None if rate is None else float(rate),
                rates["before"],
                rates["after"],
                int(last.metrics.get("pool", 0)) if last else 0,
                held(path),
                float(last.at) if last else None,
            )
    except AriseError as error:
        return RunLine(path.name, wrong=str(error))


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} %"
