"""Sampler: draws by cell, the ledger's estimates, and why each slot got its task."""

from collections.abc import Sequence

import numpy as np

from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import Dot, dot_chart, stacked_bars
from arise.report.dashboard.charts.heatmap import heatmaps
from arise.report.dashboard.charts.lines import Line, line_chart
from arise.report.dashboard.charts.palette import BLUE, CAPABILITY, GREY, ORANGE, PATH
from arise.report.dashboard.pages.page import Asked, Fact, NotFound, Page
from arise.run.numbering import iteration_of, k_of
from arise.run.rows import CellRow, Iteration
from arise.run.why import why
from arise.text.numbers import decimal, interval, percent
from arise.types import Capability

COLUMNS = tuple(capability.value for capability in Capability)
WEAKEST = 20


def build(asked: Asked, iteration: int | None = None) -> Page:
    """Build the page of the sampler and the batch of one iteration."""
    run = asked.run
    committed = run.committed()
    if iteration is not None and not 1 <= iteration <= committed:
        raise NotFound(f"iteration {iteration} is not committed: this run has 1 to {committed}")
    number = iteration or committed
    iterations = run.iterations()
    cells = run.cells(k_of(number)) if committed else []
    figures = [*_stages(asked, committed), *_live(cells, number), *_curves(asked, iterations)]
    slots = [(slot, asked.links.task(slot.draw.task_id), why(slot.draw, slot.mass)) for slot in run.slots(k_of(number))]
    outcomes = {group.slot: group for group in run.groups(k=k_of(number))}
    content = {"number": number, "committed": committed, "slots": slots, "outcomes": outcomes, "colours": PATH}
    return Page("sampler.html", "Sampler", "sampler", _facts(asked, number, iterations, cells), figures, content)


def _facts(asked: Asked, number: int, iterations: Sequence[Iteration], cells: Sequence[CellRow]) -> list[Fact]:
    rho = dict(asked.run.discovery()).get(k_of(number))
    coverage = iterations[number - 1].metrics.get("coverage") if number else None
    facts = [
        Fact(percent(rho), "chance of discovery ρ", f"iteration {number}"),
        Fact(percent(coverage), "coverage C", "rubrics already judged on tasks"),
        Fact(str(len(cells)), "cells with evidence", "task type × capability"),
    ]
    if cells:
        weakest = min(cells, key=_mean)
        facts.append(Fact(percent(_mean(weakest)), "weakest cell", f"{weakest.capability}, {weakest.task_type}"))
    return facts


def _mean(cell: CellRow) -> float:
    return (1.0 + cell.passes) / (2.0 + cell.passes + cell.fails)


def _expected_weight(cell: CellRow) -> float:
    """Return E[p (1 - p)^2] for p ~ Beta(1 + S, 1 + F), in closed form."""
    a, b = 1.0 + cell.passes, 1.0 + cell.fails
    return a * b * (b + 1) / ((a + b) * (a + b + 1) * (a + b + 2))


def beta_interval(passes: float, fails: float) -> tuple[float, float]:
    """Return the central 95 % interval of Beta(1 + S, 1 + F), by summing its density over a fine grid."""
    p = (np.arange(2000) + 0.5) / 2000
    logs = passes * np.log(p) + fails * np.log1p(-p)
    total = np.cumsum(np.exp(logs - logs.max()))
    low, high = np.searchsorted(total / total[-1], (0.025, 0.975))
    return float(p[low]), float(p[min(high, len(p) - 1)])


def _stages(asked: Asked, committed: int) -> list[Figure]:
    """Draw adaptive draws by cell in the first, middle and last third of the committed iterations."""
    edges = [round(n * committed / 3) for n in range(4)]
    panels, table = [], []
    for name, first, end in zip(("early", "middle", "late"), edges, edges[1:], strict=False):
        if end > first:
            draws = asked.run.cell_draws(first, end - 1)
            known = {(cell.task_type, cell.capability) for cell in asked.run.cells(end - 1)}
            total = sum(draw.draws for draw in draws) or 1
            shares = dict.fromkeys(known, 0.0)
            shares |= {(draw.task_type, draw.capability): draw.draws / total for draw in draws}
            panels.append((f"{name}, iterations {iteration_of(first)}–{end}", shares))
            table += [(name, iteration_of(first), end, *draw, draw.draws / total) for draw in draws]
    rows = sorted({task_type for _, shares in panels for task_type, _ in shares})
    if not rows:
        return []
    top = max(share for _, shares in panels for share in shares.values())
    return [
        Figure(
            "stages",
            "Where adaptive slots went, % of them",
            heatmaps("share of adaptive draws by cell and stage", rows, COLUMNS, panels, top),
            Table(("stage", "from", "to", "task type", "capability", "draws", "share"), table),
            "A dot where there is no evidence; discovery is left out. One colour scale for all three.",
            wide=True,
        )
    ]


def _live(cells: Sequence[CellRow], number: int) -> list[Figure]:
    if not cells:
        return []
    weights = [_expected_weight(cell) for cell in cells]
    shares = {(c.task_type, c.capability): w / sum(weights) for c, w in zip(cells, weights, strict=True)}
    means = {(c.task_type, c.capability): _mean(c) for c in cells}
    rows = sorted({cell.task_type for cell in cells})
    table = Table(
        ("task type", "capability", "success mass S", "failure mass F", "mean", "low 95 %", "high 95 %", "next share"),
        [(*c[1:], _mean(c), *beta_interval(c.passes, c.fails), shares[c.task_type, c.capability]) for c in cells],
    )
    return [
        Figure(
            "belief",
            f"Estimated pass rate after iteration {number}, %",
            heatmaps("estimated pass rate by cell", rows, COLUMNS, [("", means)], 1.0),
            table,
            "Mean of Beta(1 + S, 1 + F): the ledger's estimate, over guided and unguided rollouts.",
        ),
        Figure(
            "next",
            "Expected share of the next adaptive slots, %",
            heatmaps("expected share by cell", rows, COLUMNS, [("", shares)], max(shares.values())),
            table,
            "From the expected weight p (1 − p)², before quotas.",
        ),
        _weakest(cells, table),
    ]


def _weakest(cells: Sequence[CellRow], table: Table) -> Figure:
    weakest, lines = sorted(cells, key=_mean)[:WEAKEST], []
    for cell in weakest:
        low, high = beta_interval(cell.passes, cell.fails)
        mean, mass = _mean(cell), f"S {decimal(cell.passes, 1)}, F {decimal(cell.fails, 1)}"
        said = f"{percent(mean)}, {interval(low, high)}, {mass}"
        name = f"{cell.task_type.replace('-', ' ')}, {cell.capability}"
        lines.append((name, [Dot(cell.capability, mean, low, high, said)]))
    colours = {capability.value: colour for capability, colour in CAPABILITY.items()}
    return Figure(
        "weakest",
        f"The {len(weakest)} weakest cells with 95 % intervals",
        dot_chart("weakest cells", lines, colours, 1140.0),
        table,
        "Wide lines are cells with little evidence.",
        tuple(colours.items()),
        wide=True,
    )


def _curves(asked: Asked, iterations: Sequence[Iteration]) -> list[Figure]:
    rho, numbers = dict(asked.run.discovery()), [i.number for i in iterations]
    coverage = [(float(i.number), i.metrics.get("coverage")) for i in iterations]
    lines = [
        Line("coverage C", BLUE, coverage),
        Line("discovery ρ", ORANGE, [(float(n), rho.get(k_of(n))) for n in numbers]),
    ]
    counts: dict[str, list[float]] = {}
    for k, path, slots in asked.run.paths():
        counts.setdefault(path, [0.0] * len(numbers))[k] = float(slots)
    colours = {path: PATH.get(path, GREY) for path in counts}
    return [
        Figure(
            "coverage",
            "Coverage and discovery",
            line_chart("coverage and discovery probability", lines, percent=True, y_range=(0.0, 1.0)),
            Table(
                ("iteration", "coverage", "rho"),
                [(n, c, rho.get(k_of(n))) for n, (_, c) in zip(numbers, coverage, strict=True)],
            ),
            "ρ = 1 − C, at least its floor: new rubrics push coverage down and discovery up.",
            tuple((line.name, line.colour) for line in lines),
        ),
        Figure(
            "paths",
            "How slots were filled",
            stacked_bars("slots by path", numbers, counts, colours),
            Table(("iteration", *counts), list(zip(numbers, *counts.values(), strict=True))),
            "",
            tuple(colours.items()),
        ),
    ]


def slot_link(asked: Asked, k: int, slot: int) -> Link:
    """Return a link to a slot on this page."""
    iteration = iteration_of(k)
    return Link(f"{iteration}:{slot + 1}", asked.links.sampler(iteration, slot))
