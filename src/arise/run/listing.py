"""Runs at a glance: one row per run, for `arise runs` and the dashboard's list."""

import time
from pathlib import Path
from typing import NamedTuple

from arise.errors import AriseError
from arise.method.pass_rate import pass_rate
from arise.run.facts.story import RunFacts, ending, run_facts
from arise.run.folder import CONFIG_FILE
from arise.run.reader import RunReader
from arise.text.numbers import MISSING, counted_rate, percent

COLUMNS = ["run", "state", "iterations", "held out", "still wrong", "worse", "improved", "pool", "last commit"]
EXPLAINED = (
    "held out: pass rate on held-out tasks without skills, before and after training; still wrong: the weakest "
    "behaviour without its skill; worse, improved: behaviours and task types whose unguided rate fell or rose"
)


class RunLine(NamedTuple):
    """A run in one row; `wrong` says why it cannot be read."""

    name: str
    state: str = ""
    committed: int = 0
    planned: int | None = None
    before: float | None = None
    after: float | None = None
    weakest: str = ""
    worse: int = 0
    improved: int = 0
    pass_rate: float | None = None
    pool: int = 0
    last_commit: float | None = None
    wrong: str = ""

    @property
    def held_out(self) -> str:
        """Write both rates: `5.6 % → 47.8 %`."""
        return " → ".join(percent(rate) for rate in (self.before, self.after) if rate is not None) or MISSING

    @property
    def progress(self) -> str:
        return f"{self.committed}/{self.planned if self.planned is not None else '?'}"

    @property
    def committed_at(self) -> str:
        return "" if self.last_commit is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(self.last_commit))

    def cells(self) -> list[str]:
        """Return the cells of the row, in the order of `COLUMNS`."""
        if self.wrong:
            return [self.name, "cannot be read", *[MISSING] * 6, self.wrong.splitlines()[0]]
        moved = [str(self.worse), str(self.improved), str(self.pool)]
        weakest = self.weakest or MISSING
        return [self.name, self.state, self.progress, self.held_out, weakest, *moved, self.committed_at]


def list_runs(folder: Path) -> list[RunLine]:
    """Return every run directly below a folder, by name."""
    found = sorted(path for path in folder.glob("*") if (path / CONFIG_FILE).is_file()) if folder.is_dir() else []
    return [run_line(path, path.name) for path in found]


def run_line(folder: Path, name: str) -> RunLine:
    """Return the row of one run; an unreadable run has the reason in its row."""
    try:
        with RunReader.open(folder) as run:
            last, facts = run.last_iteration(), run_facts(run)
            planned = run.config().get("train", {}).get("iterations")
            before, now = facts.held_out.before, facts.held_out.now
            metrics = last.metrics if last else {}
            return RunLine(
                name,
                ending(run),
                last.number if last else 0,
                None if planned is None else int(planned),
                pass_rate(before.tally) if before else None,
                pass_rate(now.tally) if now else None,
                _weakest(facts),
                len(facts.worse),
                len(facts.improved),
                metrics.get("pass_rate"),
                int(metrics.get("pool", 0)),
                float(last.at) if last else None,
            )
    except AriseError as error:
        return RunLine(name, wrong=str(error))


def _weakest(facts: RunFacts) -> str:
    found = facts.still_wrong[:1]
    return "".join(f"{b.rubric.id} {counted_rate(*b.unguided)}" for b in found)
