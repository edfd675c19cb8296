"""The paper's Tables 1, 6 and 11 and the table of final pass rates, computed from counts."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from arise.evaluation.metrics import mean_and_deviation
from arise.method.intervals import wilson_interval
from arise.report.comparison.document import Table
from arise.report.comparison.measures import RunMeasures, Score, Study
from arise.report.comparison.statistics import Interval, student_interval
from arise.text import numbers

LABELS = {
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
BASE = "Start (no training)"


def label(method: str) -> str:
    """Return a method's name as shown in tables and figures."""
    return LABELS.get(method, method)


def pooled(runs: Sequence[RunMeasures], evaluation: str) -> Score:
    """Pool all attempts of several runs."""
    scores = [run.score(evaluation) for run in runs]
    return Score(sum(s.won for s in scores), sum(s.tried for s in scores), sum(s.faults for s in scores))


def table_1(study: Study) -> Table:
    """Table 1: pass rate by domain and overall, pooling the attempts of all seeds."""
    rows = [(BASE, _cells_by_domain(next(iter(study.values())), "before"))]
    rows += [(label(method), _cells_by_domain(runs, "after")) for method, runs in study.items()]
    domains = sorted({domain for _, cells in rows for domain in cells if domain})
    names = [*domains, ""]
    shown = [[name, *(rate_text(cells.get(domain)) for domain in names)] for name, cells in rows]
    best = {
        (r, c)
        for c, domain in enumerate(names, start=1)
        for r in _best([cells.get(domain) for _, cells in rows[1:]], first=1)
    }
    attempts = pooled(next(iter(study.values())), "after")
    caption = (
        f"Table 1. Held-out pass rate (%) by domain, no skill shown; {attempts.tried + attempts.faults} attempts a "
        "method over all seeds. Bold: the best method of the column."
    )
    return Table(caption, ["Method", *domains, "Overall"], shown, frozenset(best))


def _cells_by_domain(runs: Sequence[RunMeasures], evaluation: str) -> dict[str, tuple[int, int]]:
    """Map domain to (successes, counted attempts); the empty name is the total."""
    cells: dict[str, tuple[int, int]] = {}
    for run in runs:
        for row in run.labelled(evaluation):
            if row.success is not None:
                for name in dict.fromkeys((row.domain, "")):
                    won, tried = cells.get(name, (0, 0))
                    cells[name] = won + bool(row.success), tried + 1
    return cells


def rate_text(cell: tuple[int, int] | None) -> str:
    """Print passes of attempts as a percentage, or a dash."""
    return numbers.points(cell[0] / cell[1] if cell and cell[1] else None)


def _best(cells: Sequence[tuple[int, int] | None], first: int) -> list[int]:
    rates = [cell[0] / cell[1] if cell and cell[1] else -1.0 for cell in cells]
    top = max(rates, default=-1.0)
    return [first + n for n, rate in enumerate(rates) if rate == top and top > 0.0]


def table_6(study: Study) -> Table:
    """Table 6: the evaluation repeated; run a contains the a-th attempt of every task and seed."""
    rows = [_stability_row(BASE, next(iter(study.values())), "before")]
    rows += [_stability_row(label(method), runs, "after") for method, runs in study.items()]
    width = max(len(row) for row in rows) - 2
    caption = (
        "Table 6. Held-out pass rate (%) over repeated evaluation runs, with mean and sample standard deviation; "
        "run a pools the a-th attempt of every task over all seeds."
    )
    shown = [[row[0], *row[1:-1], *["–"] * (width - len(row) + 2), row[-1]] for row in rows]
    return Table(caption, ["Method", *(f"Run {a + 1}" for a in range(width)), "Mean ± Std"], shown)


def _stability_row(name: str, runs: Sequence[RunMeasures], evaluation: str) -> list[str]:
    by_run: dict[int, list[bool]] = defaultdict(list)
    for run in runs:
        for row in run.labelled(evaluation):
            if row.success is not None:
                by_run[row.attempt].append(bool(row.success))
    rates = [100.0 * sum(by_run[a]) / len(by_run[a]) for a in sorted(by_run)]
    return [name, *(numbers.decimal(rate, 1) for rate in rates), _mean_and_deviation(rates)]


def table_seeds(study: Study) -> Table:
    """Tabulate the pass rates of training runs, one column per seed."""
    seeds = sorted({run.seed for runs in study.values() for run in runs})
    rows = []
    for method, runs in study.items():
        rate_of = {run.seed: run.score("after").rate for run in runs}
        shown = [numbers.decimal(rate_of.get(seed), 1) for seed in seeds]
        rows.append([label(method), *shown, _mean_and_deviation(list(rate_of.values()))])
    caption = "Final held-out pass rate (%) by training seed, with mean and sample standard deviation over seeds."
    return Table(caption, ["Method", *(f"Seed {seed}" for seed in seeds), "Mean ± Std"], rows)


def _mean_and_deviation(rates: Sequence[float]) -> str:
    if len(rates) < 2:
        return numbers.decimal(rates[0] if rates else None, 1)
    centre, deviation = mean_and_deviation(rates)
    return f"{numbers.decimal(centre, 1)} ± {numbers.decimal(deviation, 1)}"


def table_11(study: Study) -> Table:
    """Table 11: mean time of an iteration, without evaluation."""
    rows = []
    for method, runs in study.items():
        seconds = [second for run in runs for second in run.iteration_seconds]
        rows.append([label(method), numbers.decimal(fmean(seconds) if seconds else None), str(len(seconds))])
    caption = "Table 11. Average time of a training iteration; evaluation is not part of it."
    return Table(caption, ["Method", "Seconds an iteration", "Iterations"], rows)


def table_unseen_types(study: Study) -> Table | None:
    """Tabulate held-out pass rates on task types that are not in training; None if there are none."""
    rows = []
    for method, runs in study.items():
        tried = [
            bool(row.success)
            for run in runs
            for row in run.labelled("after")
            if row.success is not None and row.task_type == run.config["tasks"].get("held_out")
        ]
        if tried:
            low, high = wilson_interval(sum(tried), len(tried))
            interval = numbers.span(low, high)
            rows.append(
                [label(method), numbers.points(sum(tried) / len(tried)), f"{sum(tried)}/{len(tried)}", interval]
            )
    caption = "Held-out pass rate (%) on the task type that training never draws, attempts of all seeds pooled."
    return Table(caption, ["Method", "Pass rate", "Successes", "Wilson 95 %"], rows) if rows else None


def table_final(study: Study) -> Table:
    """Tabulate final held-out pass rates with intervals over seeds and over pooled attempts."""
    rows = []
    for method, runs in study.items():
        score = pooled(runs, "after")
        low, high = wilson_interval(score.won, score.tried)
        over_seeds = student_interval([run.score("after").rate for run in runs]).within(0.0, 100.0)
        pool = numbers.span(low, high)
        rows.append([label(method), interval_text(over_seeds), f"{score.won}/{score.tried}", pool, str(score.faults)])
    caption = (
        "Final held-out pass rate (%), no skill shown: mean over seeds with its 95 % interval (Student's t), "
        "the pooled attempts with their Wilson interval, and attempts that infrastructure ended (left out)."
    )
    return Table(caption, ["Method", "Mean over seeds", "Successes", "Wilson 95 %", "Faults"], rows)


def p_text(p: float) -> str:
    """Write a p-value with three decimals, never as 0."""
    return "<\u00a00.001" if p < 0.0005 else f"{p:.3f}"


def interval_text(interval: Interval, signed: bool = False) -> str:
    """Write an estimate with its interval: `12.3 (95 % 10.1 to 14.5)`."""
    write = numbers.signed if signed else numbers.decimal
    if interval.low is None or interval.high is None:
        return f"{write(interval.estimate, 1)} (one seed: no interval)"
    return f"{write(interval.estimate, 1)} (95 % {write(interval.low, 1)} to {write(interval.high, 1)})"


def paper_tables(study: Study) -> list[Table]:
    """Return all tables of the paper that the runs have data for, and the table over seeds."""
    return [table_1(study), table_6(study), table_seeds(study), table_11(study)]
