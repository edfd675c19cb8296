"""What calls to models cost, from the run folder's own record of them; nothing where a run makes none."""

import json
import sqlite3
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from arise.dashboard.charts import Figure, Table
from arise.dashboard.charts.lines import Line, line_chart
from arise.dashboard.charts.palette import SERIES
from arise.store.rows import Iteration

TAIL_BYTES = 1_000_000


class Calls(NamedTuple):
    """Calls of one purpose to one model."""

    purpose: str
    model: str
    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    usd: float
    unpriced: int


@dataclass(frozen=True)
class Spending:
    """Spend by purpose and model, and by purpose and iteration."""

    calls: tuple[Calls, ...]
    by_iteration: Mapping[str, Sequence[float]]
    numbers: Sequence[int]
    cap: float

    @classmethod
    def of(cls, folder: Path, iterations: Sequence[Iteration], config: Mapping[str, Any]) -> "Spending":
        """All calls recorded in a run folder; a call belongs to the first iteration committed after it."""
        cap, numbers = float(config.get("budget", {}).get("max_usd", 0.0)), [i.number for i in iterations]
        path = folder / "calls.db"
        if not path.is_file():
            return cls((), {}, numbers, cap)
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as db:
                calls = db.execute(
                    "SELECT purpose, model, COUNT(*), SUM(prompt_tokens), SUM(cached_tokens), SUM(completion_tokens), "
                    "COALESCE(SUM(nano_usd), 0) / 1e9, SUM(nano_usd IS NULL) FROM spend GROUP BY 1, 2 ORDER BY 1, 2"
                ).fetchall()
                each = db.execute("SELECT purpose, at, COALESCE(nano_usd, 0) / 1e9 FROM spend").fetchall()
        except sqlite3.Error:
            return cls((), {}, numbers, cap)
        ends = [iteration.at for iteration in iterations]
        by_iteration: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(ends))
        for purpose, at, usd in each:
            place = bisect_left(ends, at)
            if place < len(ends):
                by_iteration[purpose][place] += usd
        return cls(tuple(Calls(*row) for row in calls), dict(by_iteration), numbers, cap)

    @property
    def usd(self) -> float:
        return sum(call.usd for call in self.calls)

    def figure(self) -> Figure | None:
        """Spend so far against the cap; None for a run that has no calls."""
        if not self.calls or not self.numbers:
            return None
        names = list(self.by_iteration)
        totals = [list(accumulate(self.by_iteration[name])) for name in names]
        lines = [
            Line(name, SERIES[n % len(SERIES)], list(zip(map(float, self.numbers), total, strict=True)))
            for n, (name, total) in enumerate(zip(names, totals, strict=True))
        ]
        caps = [("budget", self.cap)] if self.cap else []
        top = max([self.cap, *(total[-1] for total in totals)], default=0.0) * 1.08 or 1.0
        return Figure(
            "cost",
            "Cost so far, US dollars",
            line_chart("cost so far by purpose", lines, y_range=(0.0, top), thresholds=caps),
            Table(("iteration", *names), list(zip(self.numbers, *totals, strict=True))),
            "",
            tuple((line.name, line.colour) for line in lines),
        )


def call_events(folder: Path) -> tuple[Counter[str], list[dict[str, Any]]]:
    """What happened around calls, from the end of the run's log: counts by name, and the last of them."""
    path = folder / "calls.jsonl"
    if not path.is_file():
        return Counter(), []
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    found = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the first line of the tail is cut, the last may still be being written
        if isinstance(event, dict) and "event" in event:
            found.append(event)
    return Counter(str(event["event"]) for event in found), found[-50:]
