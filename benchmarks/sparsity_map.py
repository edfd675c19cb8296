"""The map: when methods reach 50 %, by how many behaviours every task requires, measured and calculated.

    python -m benchmarks.sparsity_map docs/results/map/depth-*                       the table
    python -m benchmarks.sparsity_map docs/results/map/depth-* --figure map.png      and the picture

Each folder holds a comparison at one `tasks.depth`; `base.toml`, `results.json` and `attempts.csv.gz` are read, as
`arise compare` wrote them, and the map's four methods are shown. Folders with equal depth and settings are other seeds
of one comparison. Runs that are not finished are named below the table. Where a curve stands at 50 % is read off the
line between two evaluations. Differences between methods are paired by seed, task and attempt. A speed-up is
outcome-only's number of iterations to there over the method's; where outcome-only never gets there, its budget takes
its place, a lower bound.
"""

import argparse
import csv
import gzip
import json
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from arise.report.comparison.statistics import Interval, Outcomes, compare, student_interval
from arise.report.comparison.tables import label
from arise.text.numbers import MISSING, decimal, signed
from benchmarks.sparsity import SEEDS, Curve, calculated

REFERENCE, HALF, LENGTH = "outcome-only", 50.0, 150
MARKS = {
    "outcome-only": ("o", "C0"),
    "no-skill-injection": ("s", "C1"),
    "arise": ("D", "C2"),
    "bare-unsolved": ("*", "C4"),
}
BY_METHOD = ("curves", "final", "all_fail_at_start")
"""The parts of `results.json` that are read: by method, then by seed."""
CALCULATED = ("outcome only", "rubrics", "rubrics and skills")


@dataclass(frozen=True)
class Cell:
    """A method at one depth: its mean curve, rates at the end, groups that all fail at the start."""

    depth: int
    method: str
    budget: int
    curve: Mapping[int, float]
    ends: Mapping[str, float]
    """By seed."""
    attempts: Outcomes
    """Held-out attempts at the end."""
    failed: float | None
    """The share of groups that fail whole before the first pool update; None if the comparison does not say."""

    @property
    def half(self) -> float | None:
        """Return where the mean curve first stands at 50 %, between two evaluations on the line through them."""
        for (k, rate), (later, higher) in pairwise(self.curve.items()):
            if rate < HALF <= higher:
                return k + (later - k) * (HALF - rate) / (higher - rate)
        return None


def read(folders: Sequence[Path]) -> list[list[Cell]]:
    """Return the cells of each depth, shallow first."""
    found: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
    attempts: dict[tuple[int, str], dict[tuple[int, str, int], bool]] = defaultdict(dict)
    for folder in folders:
        base, page = _pages(folder)
        settings, joined = found.setdefault(base["tasks"]["depth"], (base, {part: {} for part in BY_METHOD}))
        if _without_seed(settings) != _without_seed(base):
            raise SystemExit(f"{folder}: base.toml differs from that of another folder with the same depth")
        for part, method, by_seed in [(p, m, page[p][m]) for p in BY_METHOD for m in page.get(p, {})]:
            seeds = joined[part].setdefault(method, {})
            if twice := sorted(seeds.keys() & by_seed.keys()):
                raise SystemExit(f"{folder}: {method} with seed {twice[0]} is in another folder too")
            seeds.update(by_seed)
        for method, key, won in _last_attempts(folder, base["train"]["iterations"]):
            if str(key[0]) in page["final"].get(method, {}):  # runs that stopped in their last evaluation are left out
                attempts[base["tasks"]["depth"], method][key] = won
    return [
        [
            _cell(depth, method, base["train"]["iterations"], page, attempts[depth, method])
            for method in MARKS
            if method in page["curves"]
        ]
        for depth, (base, page) in sorted(found.items())
    ]


def _without_seed(base: dict[str, Any]) -> dict[str, Any]:
    return base | {"train": {name: value for name, value in base["train"].items() if name != "seed"}}


def _pages(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    base = tomllib.loads((folder / "base.toml").read_text(encoding="utf-8"))
    return base, json.loads((folder / "results.json").read_text(encoding="utf-8"))


def _last_attempts(folder: Path, budget: int) -> Iterator[tuple[str, tuple[int, str, int], bool]]:
    with gzip.open(folder / "attempts.csv.gz", "rt", encoding="utf-8", newline="") as page:
        for row in csv.DictReader(page):
            if int(row["iteration"]) == budget and row["success"]:
                yield row["method"], (int(row["seed"]), row["task"], int(row["attempt"])), row["success"] == "1"


def _cell(depth: int, method: str, budget: int, page: Mapping[str, Any], attempts: Outcomes) -> Cell:
    curves = page["curves"][method]
    points = sorted(set.intersection(*({int(k) for k in curve} for curve in curves.values())))
    mean = {k: fmean(curve[str(k)] for curve in curves.values()) for k in points}
    counts = page["all_fail_at_start"].get(method, {}).values()
    failed = sum(failed for failed, _ in counts) / sum(groups for _, groups in counts) if counts else None
    return Cell(depth, method, budget, mean, page["final"][method], attempts, failed)


def stopped(folder: Path) -> list[str]:
    """Name the unfinished runs of a comparison with their curves."""
    base, page = _pages(folder)
    return [
        f"depth {base['tasks']['depth']}, {label(method)}, seed {seed}: "
        + ", ".join(f"{decimal(rate, 0)} % at {k}" for k, rate in curve.items())
        for method, by_seed in page.get("unfinished", {}).items()
        for seed, curve in by_seed.items()
    ]


def table(cells: Sequence[Cell]) -> list[str]:
    """Return the rows of the map."""
    points = sorted({k for cell in cells for k in cell.curve})
    head = ["depth", "groups all-fail at the start, %", "method", "seeds", *map(str, points), "50 % at", "end (95 %)"]
    head += [f"points above {label(REFERENCE)}, 95 % over seeds", "over seeds and tasks"]
    rows = [head, ["---"] * len(head)]
    references = {cell.depth: cell.attempts for cell in cells if cell.method == REFERENCE}
    for cell in cells:
        means = [decimal(cell.curve.get(k), 0) for k in points]
        starts = [str(cell.depth), MISSING if cell.failed is None else decimal(100.0 * cell.failed, 0)]
        half = "never" if cell.half is None else decimal(cell.half, 0)
        gain = None if cell.method == REFERENCE else compare(cell.attempts, references.get(cell.depth, {}))
        ends = [
            _written(student_interval(tuple(cell.ends.values())).within(0.0, 100.0), decimal),
            _written(gain.by_seed.within(-100.0, 100.0), signed) if gain else MISSING,
            _written(gain.by_seed_and_task, signed) if gain else MISSING,
        ]
        rows.append([*starts, label(cell.method), ", ".join(cell.ends), *means, half, *ends])
    return [f"| {' | '.join(row)} |" for row in rows]


def _written(found: Interval, write: Callable[[float | None, int], str]) -> str:
    interval = "" if found.low is None else f" ({write(found.low, 0)} to {write(found.high, 0)})"
    return write(found.estimate, 0) + interval


def speed_up(half: float | None, reference: float | None, budget: int) -> tuple[float, bool] | None:
    """Return the speed-up and whether it is only a lower bound; None if the method never stands at 50 %."""
    return None if not half else ((reference or budget) / half, reference is None)


def draw(path: Path, comparisons: Sequence[Sequence[Cell]], curves: Mapping[int, Sequence[Curve]]) -> None:
    """Draw iterations to 50 % and the speed-up against the depth: lines are the calculation, points are measured."""
    from matplotlib import pyplot

    figure, (when, faster) = pyplot.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    for n, name in enumerate(CALCULATED):
        reached = {depth: of_depth[n].reaches(0.5) for depth, of_depth in curves.items()}
        when.plot(list(reached), [k or LENGTH for k in reached.values()], color=f"C{n}", label=f"{name}, calculated")
        ratios = {d: speed_up(k, curves[d][0].reaches(0.5), LENGTH) for d, k in reached.items()}
        shown = {depth: ratio[0] for depth, ratio in ratios.items() if ratio}
        known = {depth: ratio[0] for depth, ratio in ratios.items() if ratio and not ratio[1]}
        faster.plot(list(shown), list(shown.values()), color=f"C{n}", ls=":")
        faster.plot(list(known), list(known.values()), color=f"C{n}")
    for cells in comparisons:
        _points(when, faster, cells)
    when.set(yscale="log", xlabel="behaviours that every task requires at once", ylabel="iterations to 50 % held out")
    when.set_yticks([10, 20, 30, 50, 100, LENGTH], ["10", "20", "30", "50", "100", "never"])
    faster.set(xlabel=when.get_xlabel(), ylabel="speed-up (dotted, arrow: at least)")
    when.minorticks_off()
    handles = dict(zip(*reversed(when.get_legend_handles_labels()), strict=True))
    when.legend(handles.values(), handles.keys(), fontsize=7)
    figure.savefig(path, dpi=130)


def _points(when: Any, faster: Any, cells: Sequence[Cell]) -> None:
    """Draw the cells of one comparison into both panels; an arrow upwards is a lower bound."""
    reference = {cell.method: cell.half for cell in cells}
    for cell in cells:
        marker, colour = MARKS[cell.method]
        name = f"{label(cell.method)}, measured"
        look = {"marker": marker, "color": colour, "ls": "", "ms": 9, "alpha": 0.75, "label": name}
        when.plot(cell.depth, cell.half or LENGTH, **look)
        found = speed_up(cell.half, reference[REFERENCE], cell.budget) if REFERENCE in reference else None
        if found:
            faster.plot(cell.depth, found[0], **look)
        if found and found[1]:
            ends = (cell.depth, 1.22 * found[0]), (cell.depth, found[0])
            faster.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": colour})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="comparisons, each at one depth")
    parser.add_argument("--figure", type=Path, help="draw calculation and measurements into this file")
    options = parser.parse_args()
    comparisons = read(options.folders)
    print("\n".join(table([cell for cells in comparisons for cell in cells])))
    unfinished = [line for folder in options.folders for line in stopped(folder)]
    print("Not finished:", "; ".join(unfinished) or "none", end=".\n")
    if options.figure:
        draw(options.figure, comparisons, calculated(range(SEEDS)))


if __name__ == "__main__":
    main()
