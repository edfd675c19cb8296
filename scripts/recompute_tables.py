"""Recomputes the tables of a comparison from raw attempts and compares every printed cell, names of rows included.

Independent on purpose: standard library only, nothing of arise. Usage: python scripts/recompute_tables.py DIR
DIR is a folder of `arise compare`, or a published one, which has the attempts in one file and no runs.
"""

import csv
import gzip
import json
import math
import sqlite3
import sys
import tomllib
from collections import defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

Rows = list[list[str]]
DASH = "–"
NAMES = {
    "arise": "ARISE",
    "frozen-rubrics": "Frozen Rubrics",
    "no-skill-injection": "w/o Skill Injection",
    "no-adaptive-sampling": "w/o Adaptive Sampling",
    "vade-sampling": "w/ VADE Sampling",
    "outcome-only": "Outcome-only RL",
    "vade": "VADE",
    "online-rubrics": "OnlineRubrics",
    "ruscarl": "RuscaRL",
    "all-guided": "ARISE, all guided",
    "ruscarl-advice": "RuscaRL, advice",
    "watch": "ARISE, watch",
    "fading": "ARISE, fading",
    "unsolved": "ARISE, unsolved",
    "bare-prompt": "ARISE, bare prompt",
    "bare-unsolved": "ARISE, bare prompt, unsolved",
    "same-prompt": "ARISE, same prompt",
    "unguided-rate": "ARISE, unguided rate",
    "two-verdicts": "ARISE, two verdicts",
}


class Attempt(NamedTuple):
    """One held-out attempt."""

    task: str
    number: int
    domain: str
    success: bool | None
    stop: str


class Run(NamedTuple):
    """One run of a method with a seed; one that is not finished has no attempts `after`."""

    method: str
    seed: int
    before: list[Attempt]
    after: list[Attempt]
    curve: dict[int, Fraction]
    seconds: list[float]


def read_attempts(folder: Path, db: sqlite3.Connection, label: str) -> list[Attempt]:
    """The raw file of an evaluation, and beside it the table that was filled from it: the two must tell the same."""
    sql = "SELECT task_id, attempt, domain, success, stop FROM attempts WHERE label=?"
    rows = db.execute(sql, (label,))
    kept = sorted(Attempt(t, n, d, None if won is None else bool(won), stop) for t, n, d, won, stop in rows)
    raw_file = folder / "evaluations" / f"{label}.jsonl"
    if not raw_file.is_file():
        raise SystemExit(f"{raw_file} is not there: nothing to recompute from")
    lines = [json.loads(line) for line in raw_file.read_text(encoding="utf-8").splitlines() if line.strip()]
    raw = sorted(Attempt(x["task_id"], x["attempt"], x["domain"], x["success"], x["stop"]) for x in lines)
    if raw != kept:
        raise SystemExit(f"{raw_file} and run.db do not hold the same attempts")
    return raw


def read_run(place: Path, method: str, seed: int) -> Run | None:
    """One run, or None before its first evaluation."""
    planned = tomllib.loads((place / "config.toml").read_text(encoding="utf-8"))["train"]["iterations"]
    db = sqlite3.connect(f"file:{place / 'run.db'}?mode=ro", uri=True)
    try:
        (done,) = db.execute("SELECT COUNT(*) FROM iterations").fetchone()
        labels = {label for (label,) in db.execute("SELECT DISTINCT label FROM attempts")}
        parts: dict[int, list[float]] = defaultdict(list)
        for k, value in db.execute("SELECT k, value FROM vitals WHERE name LIKE 'seconds.%'"):
            parts[k].append(value)
        points = {k: label for k, label in ((0, "before"), (planned, "after")) if label in labels}
        points |= {int(label[1:]): label for label in labels if label[0] == "k" and label[1:].isdigit()}
        of_point = defaultdict(list, {k: read_attempts(place, db, label) for k, label in points.items()})
        curve = {k: one for k in sorted(points) if (one := rate(of_point[k])) is not None}
        seconds = [math.fsum(parts[k]) for k in sorted(parts)]
        after = of_point[planned] if done >= planned and planned in curve else []
        return Run(method, seed, of_point[0], after, curve, seconds) if curve else None
    finally:
        db.close()


def read_published(path: Path) -> dict[str, list[Run]]:
    """The runs of a published report: all attempts, and no times."""
    points: dict[tuple[str, int], dict[int, list[Attempt]]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as page:
        for x in csv.DictReader(page):
            won = bool(int(x["success"])) if x["success"] else None
            attempt = Attempt(x["task"], int(x["attempt"]), x["domain"], won, x["stop"])
            of_run = points.setdefault((x["method"], int(x["seed"])), {})
            of_run.setdefault(int(x["iteration"]), []).append(attempt)
    found: dict[str, list[Run]] = defaultdict(list)
    planned = max(k for of_point in points.values() for k in of_point)  # the budget is the same for all
    for (method, seed), of_point in points.items():
        curve = {k: one for k in sorted(of_point) if (one := rate(of_point[k])) is not None}
        found[method].append(Run(method, seed, sorted(of_point[0]), sorted(of_point.get(planned, [])), curve, []))
    return dict(found)


def read_runs(folder: Path) -> dict[str, list[Run]]:
    """Every run with a curve, in the order of the comparison's methods and seeds."""
    if not (folder / "runs").is_dir():
        return read_published(folder / "attempts.csv.gz")
    plan = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    found: dict[str, list[Run]] = defaultdict(list)
    for method, seed in product(plan["methods"], sorted(plan["seeds"])):
        place = folder / "runs" / method / f"seed-{seed}"
        run = read_run(place, method, seed) if (place / "config.toml").is_file() else None
        if run:
            found[method].append(run)
    return dict(found)


def rate(attempts: list[Attempt]) -> Fraction | None:
    """Percent of the attempts that count."""
    outcomes = [attempt.success for attempt in attempts if attempt.success is not None]
    return Fraction(100 * sum(outcomes), len(outcomes)) if outcomes else None


def printed(value: Fraction | None) -> str:
    """Print a percentage with one digit, or a dash."""
    return DASH if value is None else f"{float(value):.1f}"


def spread(rates: list[Fraction]) -> str:
    """Mean and sample standard deviation, from unrounded rates."""
    if len(rates) < 2:
        return printed(rates[0] if rates else None)
    return f"{float(mean(rates)):.1f} ± {deviation(rates):.1f}"


def mean(rates: list[Fraction]) -> Fraction:
    """Return the mean."""
    return sum(rates, Fraction(0)) / len(rates)


def deviation(rates: list[Fraction]) -> float:
    """Return the sample standard deviation."""
    return math.sqrt(sum((one - mean(rates)) ** 2 for one in rates) / (len(rates) - 1))


def student_point(freedom: int) -> float:
    """Where Student's t has 97.5 % below it: Simpson's rule for the distribution, bisection for the point."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))

    def below(x: float, parts: int = 4000) -> float:
        values: list[float] = [
            scale * (1 + (x * n / parts) ** 2 / freedom) ** (-(freedom + 1) / 2) for n in range(parts + 1)
        ]
        return 0.5 + x / parts / 3 * (values[0] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]) + values[-1])

    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.975 else (low, middle)
    return high


def over_seeds(rates: list[Fraction], sign: str = "", bounds: tuple[float, float] = (-math.inf, math.inf)) -> str:
    """Mean with Student's interval."""
    centre = float(mean(rates))
    if len(rates) < 2:
        return f"{centre:{sign}z.1f} (one seed: no interval)"
    half = student_point(len(rates) - 1) * deviation(rates) / math.sqrt(len(rates))
    low, high = max(bounds[0], centre - half), min(bounds[1], centre + half)
    return f"{centre:{sign}z.1f} (95 % {low:{sign}z.1f} to {high:{sign}z.1f})"


def wilson(won: int, tried: int) -> str:
    """Print the 95 % Wilson interval of a proportion."""
    z, p = 1.959963984540054, won / tried
    centre, half = p + z * z / (2 * tried), z * math.sqrt(p * (1 - p) / tried + z * z / (4 * tried * tried))
    low, high = ((centre + side * half) / (1 + z * z / tried) for side in (-1, 1))
    return f"{100 * low:.1f} to {100 * high:.1f}"


def sign_p(differences: list[int]) -> str:
    """Exact two-sided p of a sign-flip test, by counting the sums of all sign patterns."""
    patterns: dict[int, int] = {0: 1}
    for difference in differences:
        more: dict[int, int] = defaultdict(int)
        for total, count in patterns.items():
            more[total + difference] += count
            more[total - difference] += count
        patterns = more
    far = sum(count for total, count in patterns.items() if abs(total) >= abs(sum(differences)))
    p = float(Fraction(far, sum(patterns.values())))
    return "<\u00a00.001" if p < 0.0005 else f"{p:.3f}"


def paired(ours: list[Run], theirs: list[Run]) -> list[str]:
    """Points over seeds, exact p by seed and by task, and the number of pairs."""
    other_of = {run.seed: {(a.task, a.number): a.success for a in run.after} for run in theirs}
    by_seed: dict[int, list[int]] = defaultdict(list)
    by_task: dict[str, list[int]] = defaultdict(list)
    for run in ours:
        for attempt in run.after:
            other = other_of.get(run.seed, {}).get((attempt.task, attempt.number))
            if attempt.success is not None and other is not None:
                by_seed[run.seed].append(attempt.success - other)
                by_task[attempt.task].append(attempt.success - other)
    if not by_seed:
        return []
    points = [Fraction(100 * sum(found), len(found)) for found in by_seed.values()]
    least = 2.0 ** (1 - len(by_seed))
    p = f"{sign_p([sum(found) for found in by_seed.values()])} (least possible {least:.3f})"
    tasks = sign_p([sum(found) for found in by_task.values()])
    return [over_seeds(points, "+"), p, tasks, str(sum(map(len, by_seed.values())))]


def first_reach(runs: list[Run], reference: list[Run]) -> str:
    """The first point of the mean curve at or above the reference's mean end, over the seeds that both have."""
    end_of = {run.seed: end for run in reference if (end := rate(run.after)) is not None}
    shared = [run for run in runs if run.seed in end_of]
    target = mean([end_of[run.seed] for run in shared])
    points = sorted(set.intersection(*(set(run.curve) for run in shared)))
    reached = [k for k in points if mean([run.curve[k] for run in shared]) >= target]
    return str(reached[0]) if reached else "never"


def over_training(methods: dict[str, list[Run]]) -> Rows:
    """Mean curves at the points that all seeds of a method have, and when they first stand at 50 %."""
    points = sorted({k for runs in methods.values() for run in runs for k in run.curve})
    rows = []
    for method, runs in methods.items():
        means = {k: mean([run.curve[k] for run in runs]) for k in points if all(k in run.curve for run in runs)}
        half = next((str(k) for k, value in means.items() if value >= 50), "never")
        rows.append([NAMES.get(method, method), str(len(runs)), half, *(printed(means.get(k)) for k in points)])
    return rows


def not_finished(runs: list[Run]) -> Rows:
    """The curves of runs that did not reach their end."""
    points = sorted({k for run in runs for k in run.curve})
    return [[NAMES.get(r.method, r.method), str(r.seed), *(printed(r.curve.get(k)) for k in points)] for r in runs]


def recompute(every: dict[str, list[Run]]) -> dict[str, Rows]:
    """Every table by the words its caption begins with."""
    ended = {method: [run for run in runs if run.after] for method, runs in every.items()}
    methods = {method: runs for method, runs in ended.items() if runs}
    starts = {"Start (no training)": [attempt for run in next(iter(methods.values())) for attempt in run.before]}
    ends = {NAMES.get(m, m): [attempt for run in runs for attempt in run.after] for m, runs in methods.items()}
    everything = starts | ends
    domains = sorted({a.domain for attempts in everything.values() for a in attempts if a.success is not None})
    seeds = sorted({run.seed for runs in methods.values() for run in runs})
    by_domain, by_run, by_seed, by_time, final, endings = [], [], [], [], [], []
    for name, attempts in everything.items():
        cells = [rate([a for a in attempts if a.domain == domain]) for domain in domains]
        by_domain.append([name, *(printed(cell) for cell in (*cells, rate(attempts)))])
        numbers = sorted({a.number for a in attempts if a.success is not None})
        rates = [one for n in numbers if (one := rate([a for a in attempts if a.number == n])) is not None]
        by_run.append([name, *map(printed, rates), spread(rates)])
        counting = [a for a in attempts if a.success is not None]
        sides = [[a for a in counting if (a.stop == "finished") == done] for done in (True, False)]
        shares = [Fraction(100 * len(side), len(counting)) if counting else None for side in sides]
        endings.append([name, *(printed(x) for n in (0, 1) for x in (shares[n], rate(sides[n])))])
    for (name, attempts), runs in zip(ends.items(), methods.values(), strict=True):
        rate_of = {run.seed: one for run in runs if (one := rate(run.after)) is not None}
        by_seed.append([name, *(printed(rate_of.get(seed)) for seed in seeds), spread(list(rate_of.values()))])
        seconds = [second for run in runs for second in run.seconds]
        by_time.append([name, f"{math.fsum(seconds) / len(seconds):.2f}" if seconds else DASH, str(len(seconds))])
        counted = [attempt.success for attempt in attempts if attempt.success is not None]
        pool = [f"{sum(counted)}/{len(counted)}", wilson(sum(counted), len(counted)), str(len(attempts) - len(counted))]
        final.append([name, over_seeds(list(rate_of.values()), bounds=(0.0, 100.0)), *pool])
    found = {
        "Table 1.": by_domain,
        "Table 6.": by_run,
        "Final held-out pass rate (%) by training seed": by_seed,
        "Table 11.": by_time if any(run.seconds for runs in methods.values() for run in runs) else [],
        "Final held-out pass rate (%), no skill shown": final,
        "How held-out attempts end": endings,
        "Held-out pass rate (%) over training": over_training(methods),
        "Runs that are not finished": not_finished([run for runs in every.values() for run in runs if not run.after]),
    }
    if "arise" in methods:
        rows = [(NAMES.get(m, m), paired(methods["arise"], runs)) for m, runs in methods.items() if m != "arise"]
        found["Paired differences"] = [[f"ARISE − {name}", *cells] for name, cells in rows if cells]
    if "outcome-only" in methods:
        reference = methods["outcome-only"]
        rows_of = {m: runs for m, runs in methods.items() if {r.seed for r in runs} & {r.seed for r in reference}}
        found["First evaluation point"] = [
            [NAMES.get(m, m), first_reach(runs, reference)] for m, runs in rows_of.items()
        ]
    return {caption: rows for caption, rows in found.items() if rows}


LEFT_OUT = {
    "Paired differences": {2},
    "First evaluation point": {2, 3, 4},
    "Held-out pass rate (%) over training": {3},
    "Runs that are not finished": {2},
}
"""Columns by caption that are resampled, repeat another column or need the run itself, and are not recomputed here."""

LATER = {"Held-out pass rate (%) over training"}
"""Tables that earlier reports do not have."""


def read_printed(page: str) -> list[tuple[str, Rows]]:
    """The tables of a Markdown page with their captions, without bold."""
    tables = []
    caption = ""
    for block in page.split("\n\n"):
        if block.startswith("|"):
            rows = [[c.strip().strip("*") for c in line.strip("|").split("|")] for line in block.strip().splitlines()]
            tables.append((caption, rows[2:]))
        elif block.startswith("*"):
            caption = block.strip().strip("*")
    return tables


def compare(folder: Path) -> tuple[int, list[str]]:
    """How many cells were compared, and which differ; a table that is printed twice is compared twice."""
    pages = [(folder / name).read_text(encoding="utf-8") for name in ("tables.md", "report.md")]
    tables = [table for page in pages for table in read_printed(page)]
    cells, differences = 0, []
    for name, rows in recompute(read_runs(folder)).items():
        shown = [found for caption, found in tables if caption.startswith(name)]
        differences += [] if shown or name in LATER else [f"{name} is not printed"]
        left_out = LEFT_OUT.get(name, set())
        for found in shown:
            kept = [[cell for column, cell in enumerate(row) if column not in left_out] for row in found]
            cells += sum(map(len, rows))
            differences += [] if len(kept) == len(rows) else [f"{name} has another number of rows"]
            differences += [
                f"{name} row {number}: printed {theirs}, recomputed {mine}"
                for number, (mine, theirs) in enumerate(zip(rows, kept, strict=False), start=1)
                if mine != theirs
            ]
    return cells, differences


def main(arguments: list[Any]) -> int:
    """Recompute one published report; return the exit code."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    cells, differences = compare(Path(arguments[0]))
    print("\n".join(differences) or f"{cells} cells recomputed from raw attempts, all as printed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
