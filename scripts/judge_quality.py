"""How learning depends on a judge's noise and on missing verdicts: one short run for each point, one curve.

    python scripts/judge_quality.py OUT            train what is missing, then write the table and the curve
    python scripts/judge_quality.py OUT --write    only write them, from the runs that are finished

The judge is the offline analyst; `flip_rate` turns that share of its verdicts round, `miss_rate` drops that share. A
run that did not finish is left out of the curve and named in the table.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

CONFIG, ITERATIONS, SEED = "configs/embedded.toml", 12, 0
POINTS = {
    "clean": (),
    "flip-20": ("judge.flip_rate=0.2",),
    "miss-90": ("judge.miss_rate=0.9",),
    "no-judge": ("judge.kind=none",),
    "flip-40": ("judge.flip_rate=0.4",),
    "miss-60": ("judge.miss_rate=0.6",),
    "flip-10": ("judge.flip_rate=0.1",),
    "miss-30": ("judge.miss_rate=0.3",),
}
"""In the order in which they are run."""
SETTINGS = (f"train.iterations={ITERATIONS}", f"train.seed={SEED}", "evaluation.attempts=1")


def train(out: Path, name: str) -> None:
    """Train one point, unless it is finished."""
    if (out / f"{name}.json").exists():
        return
    words = [sys.executable, "-m", "arise", "train", CONFIG, "--run-dir", str(out / name), "--json"]
    for change in (*SETTINGS, *POINTS[name]):
        words += ["--set", change]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    (out / f"{name}.json").write_text(done.stdout.splitlines()[-1] + "\n")


def found(out: Path) -> dict[str, tuple[int, int]]:
    """Return successes and attempts on held-out tasks of every finished point."""
    rates = {}
    for name in POINTS:
        file = out / f"{name}.json"
        if file.exists():
            after = json.loads(file.read_text())["summary"]["after"]
            rates[name] = (after["successes"], after["attempts"])
    return rates


def table(rates: dict[str, tuple[int, int]]) -> str:
    """Return the results as a Markdown table."""
    from arise.method.intervals import wilson_interval
    from arise.text import numbers

    lines = ["| judge | held out | 95 % interval |", "|---|---|---|"]
    for name in POINTS:
        if name not in rates:
            lines.append(f"| {name} | not finished | |")
            continue
        passes, attempts = rates[name]
        low, high = wilson_interval(passes, attempts)
        share = numbers.percent(passes / attempts)
        lines.append(f"| {name} | {passes}/{attempts} = {share} | {100 * low:.1f} to {100 * high:.1f} |")
    return "\n".join(lines) + "\n"


def draw(rates: dict[str, tuple[int, int]], file: Path) -> None:
    """Draw the pass rate against flip rate and miss rate with 95 % intervals; the band is training without a judge."""
    from matplotlib.figure import Figure

    from arise.method.intervals import wilson_interval
    from arise.report.figures.style import COLOURS, paper_style

    with paper_style():
        figure = Figure(figsize=(6.0, 2.6), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, kind, label in zip(panels, ("flip", "miss"), ("wrong verdicts", "missing verdicts"), strict=True):
            if "no-judge" in rates:
                low, high = wilson_interval(*rates["no-judge"])
                axes.axhspan(100 * low, 100 * high, color=COLOURS["outcome-only"], alpha=0.15, linewidth=0)
                passes, attempts = rates["no-judge"]
                axes.axhline(100 * passes / attempts, color=COLOURS["outcome-only"], linestyle=":", label="no judge")
            shares = {name: float(name.partition("-")[2] or 0) for name in rates if name.startswith(("clean", kind))}
            found = sorted((share, *rates[name]) for name, share in shares.items())
            middle = [100 * passes / attempts for _, passes, attempts in found]
            ends = [wilson_interval(passes, attempts) for _, passes, attempts in found]
            below = [at - 100 * low for at, (low, _) in zip(middle, ends, strict=True)]
            above = [100 * high - at for at, (_, high) in zip(middle, ends, strict=True)]
            axes.errorbar(
                [share for share, _, _ in found], middle, (below, above),
                color=COLOURS["arise"], marker="o", capsize=2.0, label="ARISE",
            )  # fmt: skip
            axes.set_xlabel(f"{label} (%)")
        panels[0].set_ylabel("held-out pass rate (%)")
        panels[0].set_ylim(0, 100)
        panels[0].legend(loc="lower left", frameon=False)
        figure.savefig(file, dpi=110, metadata={"Software": None})


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in POINTS if not chosen.write else ():
        train(chosen.out, name)
    rates = found(chosen.out)
    (chosen.out / "table.md").write_text(table(rates))
    draw(rates, chosen.out / "curve.png")
    sys.stdout.write(table(rates))


if __name__ == "__main__":
    main()
