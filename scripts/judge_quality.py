"""How learning depends on a judge's noise and on missing verdicts: one short run for each point, one curve.

    python scripts/judge_quality.py OUT            train what is missing, then write the table and the curve
    python scripts/judge_quality.py OUT --write    only write them, from the runs that are finished

The judge is the offline analyst; `flip_rate` turns that share of its verdicts round, `miss_rate` drops that share. The
points, iterations and seed were fixed before the first run; a run that did not finish is left out and named.
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

    lines = ["| judge | held out | 95 % |", "|---|---|---|"]
    for name in POINTS:
        if name not in rates:
            lines.append(f"| {name} | not finished | |")
            continue
        passes, attempts = rates[name]
        low, high = wilson_interval(passes, attempts)
        lines.append(
            f"| {name} | {passes}/{attempts} = {numbers.percent(passes / attempts)} | {numbers.interval(low, high)} |"
        )
    return "\n".join(lines) + "\n"


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
    sys.stdout.write(table(rates))


if __name__ == "__main__":
    main()
