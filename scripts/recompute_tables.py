"""Recomputes the tables of a comparison from raw attempts and compares every printed cell.

Independent on purpose: standard library only, nothing of arise. Usage: python scripts/recompute_tables.py DIR
"""

import json
import math
import sqlite3
import sys
import tomllib
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

Rows = list[list[str]]
DASH = "–"


class Attempt(NamedTuple):
    task: str
    number: int
    domain: str
    success: bool | None


class Run(NamedTuple):
    method: str
    seed: int
    before: list[Attempt]
    after: list[Attempt]
    seconds: list[float]


def read_attempts(folder: Path, db: sqlite3.Connection, label: str) -> list[Attempt]:
    """The raw file of an evaluation, and beside it the table that was filled from it: the two must tell the same."""
    sql = "SELECT task_id, attempt, domain, success FROM attempts WHERE label=?"
    kept = sorted(Attempt(t, n, d, None if s is None else bool(s)) for t, n, d, s in db.execute(sql, (label,)))
    raw_file = folder / "evaluations" / f"{label}.jsonl"
    if not raw_file.is_file():
        return kept
    lines = [json.loads(line) for line in raw_file.read_text(encoding="utf-8").splitlines() if line.strip()]
    raw = {(x["task_id"], x["attempt"]): Attempt(x["task_id"], x["attempt"], x["domain"], x["success"]) for x in lines}
    if sorted(raw.values()) != kept:
        raise SystemExit(f"{raw_file} and run.db do not hold the same attempts")
    return sorted(raw.values())


def read_runs(folder: Path) -> list[Run]:
    """Every finished run, in the order of the comparison's methods and seeds."""
    plan = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    runs = []
    for method in plan["methods"]:
        for seed in sorted(plan["seeds"]):
            place = folder / "runs" / method / f"seed-{seed}"
            if not (place / "config.toml").is_file():
                continue
            planned = tomllib.loads((place / "config.toml").read_text(encoding="utf-8"))["train"]["iterations"]
            db = sqlite3.connect(f"file:{place / 'run.db'}?mode=ro", uri=True)
            (done,) = db.execute("SELECT COUNT(*) FROM iterations").fetchone()
            parts: dict[int, list[float]] = defaultdict(list)
            for k, value in db.execute("SELECT k, value FROM vitals WHERE name LIKE 'seconds.%'"):
                parts[k].append(value)
            before, after = (read_attempts(place, db, label) for label in ("before", "after"))
            db.close()
            if done >= planned and any(attempt.success is not None for attempt in after):
                runs.append(Run(method, seed, before, after, [math.fsum(parts[k]) for k in sorted(parts)]))
    return runs


def rate(attempts: list[Attempt]) -> Fraction | None:
    """Percent of the attempts that count."""
    outcomes = [attempt.success for attempt in attempts if attempt.success is not None]
    return Fraction(100 * sum(outcomes), len(outcomes)) if outcomes else None


def printed(value: Fraction | None) -> str:
    return DASH if value is None else f"{float(value):.1f}"


def spread(rates: list[Fraction]) -> str:
    """Mean and sample standard deviation, from unrounded rates."""
    if len(rates) < 2:
        return printed(rates[0] if rates else None)
    centre = sum(rates, Fraction(0)) / len(rates)
    variance = sum((one - centre) ** 2 for one in rates) / (len(rates) - 1)
    return f"{float(centre):.1f} ± {math.sqrt(variance):.1f}"


def recompute(runs: list[Run]) -> dict[str, Rows]:
    """Every table by the word its caption begins with, without the names of the rows."""
    methods: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        methods[run.method].append(run)
    start = [attempt for run in next(iter(methods.values())) for attempt in run.before]
    ends = [[attempt for run in of_method for attempt in run.after] for of_method in methods.values()]
    domains = sorted(
        {attempt.domain for attempts in (start, *ends) for attempt in attempts if attempt.success is not None}
    )
    seeds = sorted({run.seed for run in runs})
    by_domain, by_run, by_seed, by_time = [], [], [], []
    for attempts in (start, *ends):
        cells = [rate([a for a in attempts if a.domain == domain]) for domain in domains]
        by_domain.append([printed(cell) for cell in (*cells, rate(attempts))])
        numbers = sorted({a.number for a in attempts if a.success is not None})
        rates = [one for n in numbers if (one := rate([a for a in attempts if a.number == n])) is not None]
        by_run.append([*map(printed, rates), spread(rates)])
    for of_method in methods.values():
        rate_of = {run.seed: one for run in of_method if (one := rate(run.after)) is not None}
        by_seed.append([*(printed(rate_of.get(seed)) for seed in seeds), spread(list(rate_of.values()))])
        seconds = [second for run in of_method for second in run.seconds]
        mean = f"{math.fsum(seconds) / len(seconds):.2f}" if seconds else DASH
        by_time.append([mean, str(len(seconds))])
    return {"Table 1.": by_domain, "Table 6.": by_run, "Final held-out pass rate": by_seed, "Table 11.": by_time}


def read_printed(page: str) -> dict[str, Rows]:
    """The tables of a Markdown page by caption; names of rows and bold are taken off."""
    tables: dict[str, Rows] = {}
    caption = ""
    for block in page.split("\n\n"):
        if block.startswith("|"):
            rows = [[c.strip().strip("*") for c in line.strip("|").split("|")] for line in block.strip().splitlines()]
            tables[caption] = [row[1:] for row in rows[2:]]
        elif block.startswith("*"):
            caption = block.strip().strip("*")
    return tables


def compare(folder: Path) -> tuple[int, list[str]]:
    """How many cells were compared, and which differ."""
    tables = read_printed((folder / "tables.md").read_text(encoding="utf-8"))
    cells, differences = 0, []
    for name, rows in recompute(read_runs(folder)).items():
        shown = next((found for caption, found in tables.items() if caption.startswith(name)), None)
        if shown is None or len(shown) != len(rows):
            differences.append(f"{name} {'is not printed' if shown is None else 'has another number of rows'}")
            continue
        for number, (mine, theirs) in enumerate(zip(rows, shown, strict=True), start=1):
            cells += len(mine)
            if mine != theirs:
                differences.append(f"{name} row {number}: printed {theirs}, recomputed {mine}")
    return cells, differences


def main(arguments: list[Any]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    cells, differences = compare(Path(arguments[0]))
    print("\n".join(differences) or f"{cells} cells recomputed from raw attempts, all as printed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
