"""Cost and latency of model calls, from the record in the run folder."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from arise.report.dashboard.charts import Figure, Table
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, ORANGE, SERIES
from arise.run.calls import Total, recorded_totals
from arise.run.numbering import iteration_of
from arise.run.reader import RunReader

TAIL_BYTES = 1_000_000


@dataclass(frozen=True)
class Spending:
    """Spend by purpose and model, and the dollars of every purpose up to the end of every iteration."""

    calls: Sequence[Total]
    so_far: Mapping[str, Sequence[float]]
    numbers: Sequence[int]
    cap: float

    @classmethod
    def of(cls, run: RunReader) -> "Spending":
        """Read the spend of a run; an iteration without a record repeats the previous sum."""
        numbers = list(range(1, run.committed() + 1))
        so_far: dict[str, list[float]] = defaultdict(list)
        for k, name, usd in run.vitals("spent."):
            purpose, _, unit = name.rpartition(".")
            if unit == "usd":
                line = so_far[purpose]
                line += [line[-1] if line else 0.0] * (k - len(line)) + [usd]
        for line in so_far.values():
            line += [line[-1]] * (len(numbers) - len(line))
        cap = float(run.config().get("budget", {}).get("max_usd", 0.0))
        return cls(recorded_totals(run.folder / "calls.db"), dict(so_far), numbers, cap)

    @property
    def usd(self) -> float:
        return sum(call.nano_usd for call in self.calls) / 1e9

    def figure(self) -> Figure | None:
        """Draw spend so far against the cap; None for a run without calls."""
        if not self.calls or not self.numbers:
            return None
        names, totals = list(self.so_far), list(self.so_far.values())
        lines = [
            Line(name, SERIES[n % len(SERIES)], list(zip(map(float, self.numbers), total, strict=True)))
            for n, (name, total) in enumerate(self.so_far.items())
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


def answer_figures(run: RunReader) -> list[Figure]:
    """Draw latency and cache hits of the judge; return nothing for an in-process judge."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for k, name, value in run.vitals("judge."):
        found[k][name] = value
    return [_latency(found), _cache(found, _prompt_tokens(run))] if found else []


def _latency(found: Mapping[int, Mapping[str, float]]) -> Figure:
    names = (("typical (median)", "seconds", BLUE), ("slow (95th percentile)", "seconds_p95", ORANGE))
    lines = [Line(name, colour, [(iteration_of(k), found[k].get(key)) for k in found]) for name, key, colour in names]
    rows = [(iteration_of(k), *(found[k].get(key) for _, key, _ in names), found[k].get("replies")) for k in found]
    return Figure(
        "latency",
        "Seconds to a judge's reply",
        line_chart("seconds to a reply of the judge", lines),
        Table(("iteration", "median seconds", "95th percentile", "replies"), rows),
        "From the first request to the answer, waiting for a free slot left out and retries included.",
        tuple((line.name, line.colour) for line in lines),
    )


def _prompt_tokens(run: RunReader) -> dict[int, tuple[float, float]]:
    """Return the judge's prompt tokens per iteration, and how many of them the provider had cached."""
    sums: dict[int, dict[str, float]] = {-1: {}}
    for k, name, value in run.vitals("spent.judge."):
        sums.setdefault(k, {})[name] = value
    return {
        after: (
            sums[after].get("prompt_tokens", 0.0) - sums[before].get("prompt_tokens", 0.0),
            sums[after].get("cached_tokens", 0.0) - sums[before].get("cached_tokens", 0.0),
        )
        for before, after in pairwise(sums)
    }


def _cache(found: Mapping[int, Mapping[str, float]], tokens: Mapping[int, tuple[float, float]]) -> Figure:
    rows = []
    for k, numbers in found.items():
        replies, recorded = numbers.get("replies", 0.0), numbers.get("recorded", 0.0)
        prompt, cached = tokens.get(k, (0.0, 0.0))
        rows.append(
            (iteration_of(k), _share(recorded, replies), recorded, replies, _share(cached, prompt), cached, prompt)
        )
    lines = [
        Line("replies already recorded", BLUE, [(float(row[0]), row[1]) for row in rows]),
        Line("prompt tokens cached by the provider", ORANGE, [(float(row[0]), row[4]) for row in rows]),
    ]
    columns = ("recorded share", "replies recorded", "replies", "cached share", "prompt tokens cached", "prompt tokens")
    return Figure(
        "cache",
        "Cache hits",
        line_chart("share of replies and of prompt tokens cached", lines, percent=True, y_range=(0.0, 1.0)),
        Table(("iteration", *columns), rows),
        "A recorded reply costs nothing, also after a resume; a cached prompt token costs less.",
        tuple((line.name, line.colour) for line in lines),
    )


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def call_events(folder: Path) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Return events around calls from the end of the log: counts by name, and the last ones."""
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
            continue  # the first line of the tail is cut, and the last may be incomplete
        if isinstance(event, dict) and "event" in event:
            found.append(event)
    return Counter(str(event["event"]) for event in found), found[-50:]
