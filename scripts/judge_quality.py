"""How learning depends on a judge's wrong and missing verdicts: one run per point and seed, one curve.

    python scripts/judge_quality.py run OUT       train what is missing; run it again to continue
    python scripts/judge_quality.py write OUT     table.md, figures/curve.png and attempts from what is finished
    python scripts/judge_quality.py table DIR     print the table again from the published attempts of DIR

The judge is the offline analyst; `flip_rate` turns that share of its pass and fail verdicts round, `miss_rate` drops
that share of all verdicts. A run that did not finish is left out of the curve and named in the table.
"""

import argparse
import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

CONFIGS = ("configs/embedded.toml", "configs/worlds/sparse.toml")
ITERATIONS, SEEDS = 40, (0, 1)
SETTINGS = (f"train.iterations={ITERATIONS}", "tasks.depth=3", "evaluation.every=10")
POINTS = {
    "clean": (),
    "flip-30": ("judge.flip_rate=0.3",),
    "no-judge": ("judge.kind=none",),
    "flip-10": ("judge.flip_rate=0.1",),
    "miss-90": ("judge.miss_rate=0.9",),
    "flip-20": ("judge.flip_rate=0.2",),
    "miss-60": ("judge.miss_rate=0.6",),
    "flip-05": ("judge.flip_rate=0.05",),
    "miss-30": ("judge.miss_rate=0.3",),
}
"""In the order in which they are run, seed by seed."""
ATTEMPTS = "held-out.csv.gz"


class Held(NamedTuple):
    """One held-out attempt of one run, evaluated after `iteration` iterations."""

    judge: str
    seed: int
    iteration: int
    task: str
    attempt: int
    success: str
    """`1`, `0`, or empty where infrastructure ended it."""


def train(out: Path, name: str, seed: int) -> None:
    """Train one run on one thread, unless it is finished."""
    folder, done = out / f"{name}-{seed}", out / f"{name}-{seed}.json"
    if done.exists():
        return
    words = [sys.executable, "-m", "arise"]
    if (folder / "run.db").exists():
        words += ["resume", str(folder), "--json"]
    else:
        words += ["train", *CONFIGS, "--run-dir", str(folder), "--json"]
        for change in (*SETTINGS, f"train.seed={seed}", *POINTS[name]):
            words += ["--set", change]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    finished = subprocess.run(words, capture_output=True, text=True, env=one_thread, check=True)
    done.write_text(finished.stdout.splitlines()[-1] + "\n")


def collected(out: Path) -> list[Held]:
    """Return the held-out attempts of every finished run."""
    rows = []
    for seed in SEEDS:
        for name in POINTS:
            if not (out / f"{name}-{seed}.json").exists():
                continue
            for file in sorted((out / f"{name}-{seed}" / "evaluations").glob("*.jsonl")):
                for line in file.read_text().splitlines():
                    got = json.loads(line)
                    success = "" if got["success"] is None else str(int(got["success"]))
                    rows.append(Held(name, seed, got["iteration"], got["task_id"], got["attempt"], success))
    return sorted(rows)


def save(rows: list[Held], file: Path) -> None:
    """Write attempts as CSV; the same rows give the same bytes."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Held._fields)
    table.writerows(rows)
    file.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def load(file: Path) -> list[Held]:
    """Read what `save` wrote."""
    with gzip.open(file, "rt") as text:
        return [
            Held(
                row["judge"], int(row["seed"]), int(row["iteration"]), row["task"], int(row["attempt"]), row["success"]
            )
            for row in csv.DictReader(text)
        ]


Counts = dict[str, dict[int, tuple[int, int]]]
"""Successes and attempts by judge and seed."""


def counted(rows: list[Held], iteration: int) -> Counts:
    """Return successes and attempts after an iteration; attempts that infrastructure ended are left out."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.iteration == iteration and row.success:
            found[row.judge][row.seed].append(int(row.success))
    return {name: {seed: (sum(all_), len(all_)) for seed, all_ in seeds.items()} for name, seeds in found.items()}


def pooled(seeds: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return successes and attempts of all seeds together."""
    return sum(won for won, _ in seeds.values()), sum(tries for _, tries in seeds.values())


def in_order() -> list[str]:
    """Return the points as a reader expects them: by kind, then by share."""
    return sorted(POINTS, key=lambda name: (("clean", "flip", "miss", "no").index(name.split("-")[0]), name))


def table(rows: list[Held]) -> str:
    """Return the results as a Markdown table."""
    from arise.method.intervals import wilson_interval

    ways = {k: counted(rows, k) for k in range(10, ITERATIONS + 1, 10)}
    lines = [
        "| judge | " + " | ".join(f"after {k}" for k in ways) + " | seeds at the end | pooled | Wilson 95 % |",
        "|---" * (len(ways) + 4) + "|",
    ]
    for name in in_order():
        last = ways[ITERATIONS].get(name)
        if not last:
            lines.append(f"| {name} | not finished" + " |" * (len(ways) + 3))
            continue
        means = " | ".join(f"{100 * won / tries:.1f}" for won, tries in (pooled(ways[k][name]) for k in ways))
        each = ", ".join(f"{100 * won / tries:.1f}" for _, (won, tries) in sorted(last.items()))
        won, tries = pooled(last)
        low, high = wilson_interval(won, tries)
        lines.append(f"| {name} | {means} | {each} | {won}/{tries} | {100 * low:.1f} to {100 * high:.1f} |")
    return "\n".join(lines) + "\n"


def draw(rows: list[Held], file: Path) -> None:
    """Draw the final pass rate against flip rate and miss rate: a dot per seed, a line through means."""
    from matplotlib.figure import Figure

    from arise.report.figures.style import COLOURS, paper_style

    last = counted(rows, ITERATIONS)
    rates = {name: [100 * won / tries for won, tries in seeds.values()] for name, seeds in last.items()}
    with paper_style():
        figure = Figure(figsize=(6.0, 2.6), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, kind, label in zip(panels, ("flip", "miss"), ("wrong", "missing"), strict=True):
            if "no-judge" in rates:
                each = rates["no-judge"]
                axes.axhspan(min(each), max(each), color=COLOURS["outcome-only"], alpha=0.15, linewidth=0)
                axes.axhline(sum(each) / len(each), color=COLOURS["outcome-only"], linestyle=":", label="no judge")
            shares = {
                float(name.partition("-")[2] or 0): rates[name] for name in rates if name.startswith(("clean", kind))
            }
            for share, each in shares.items():
                axes.plot([share] * len(each), each, color=COLOURS["arise"], marker="o", linestyle="", alpha=0.5)
            means = sorted((share, sum(each) / len(each)) for share, each in shares.items())
            axes.plot(*zip(*means, strict=True), color=COLOURS["arise"], label="mean of seeds")
            axes.set_xlabel(f"{label} verdicts (%)")
        panels[0].set_ylabel(f"held out after {ITERATIONS} iterations (%)")
        panels[0].set_ylim(0, 100)
        panels[0].legend(loc="lower left", frameon=False)
        figure.savefig(file, dpi=110, metadata={"Software": None})


def main() -> None:
    """Train, write or print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("run", "write", "table"))
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    out: Path = chosen.folder
    if chosen.command == "table":
        sys.stdout.write(table(load(out / ATTEMPTS)))
        return
    (out / "figures").mkdir(parents=True, exist_ok=True)
    if chosen.command == "run":
        for seed in SEEDS:
            for name in POINTS:
                train(out, name, seed)
    rows = collected(out)
    save(rows, out / ATTEMPTS)
    (out / "table.md").write_text(table(rows))
    draw(rows, out / "figures" / "curve.png")
    sys.stdout.write(table(rows))


if __name__ == "__main__":
    main()
