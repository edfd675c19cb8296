"""Figure 5: adaptive draws by task type and capability, in three stages of a run."""

from collections import Counter

from matplotlib.figure import Figure

from arise.report.comparison.measures import STAGES, Study, stage_edges
from arise.report.figures.style import WIDTH
from arise.types import Capability

TASK_TYPES = 14
"""Maximum number of task types shown, most drawn first; more would be too small to read."""


EMPTY = "#f0f1f3"


def sampling_by_stage(study: Study) -> Figure | None:
    """Draw Figure 5 over the seeds of the first adaptive method; None if there is none."""
    runs = next((runs for runs in study.values() if any(any(run.cells_by_stage) for run in runs)), None)
    if runs is None:
        return None
    counts: list[Counter[tuple[str, str]]] = [Counter(), Counter(), Counter()]
    for run in runs:
        for stage, cells in enumerate(run.cells_by_stage):
            for cell in cells:
                counts[stage][cell.task_type, cell.capability] += cell.draws
    by_type: Counter[str] = Counter()
    for stage_counts in counts:
        for (task_type, _), draws in stage_counts.items():
            by_type[task_type] += draws
    task_types = sorted(name for name, _ in by_type.most_common(TASK_TYPES))
    return _draw(counts, task_types, runs[0].planned)


def _draw(counts: list[Counter[tuple[str, str]]], task_types: list[str], iterations: int) -> Figure:
    edges = stage_edges(iterations)
    capabilities = [capability.value for capability in Capability]
    shares = []
    for stage_counts in counts:
        total = sum(stage_counts.values()) or 1
        shares.append([[100.0 * stage_counts[d, c] / total or float("nan") for c in capabilities] for d in task_types])
    top = max((value for stage in shares for row in stage for value in row if value == value), default=1.0)
    figure = Figure(figsize=(WIDTH, 1.35 + 0.2 * len(task_types)))
    panels = figure.subplots(1, 3, sharey=True)
    for stage, axes in enumerate(panels):
        image = axes.imshow(shares[stage], cmap="cividis_r", vmin=0.0, vmax=top, aspect="auto")
        for d, row in enumerate(shares[stage]):
            for c, value in enumerate(row):
                if value == value:
                    tint = "white" if value > 0.55 * top else "black"
                    axes.text(c, d, f"{value:.0f}", ha="center", va="center", size=6.5, color=tint)
        first, last = edges[stage] + 1, edges[stage + 1]
        axes.set_title(f"{STAGES[stage].capitalize()} ({first}–{last})")
        axes.set_xticks(range(len(capabilities)), capabilities, rotation=40, ha="right")
        axes.set_yticks(range(len(task_types)), task_types)
        axes.set_facecolor(EMPTY)
        axes.grid(visible=False)
        axes.set_xticks([edge - 0.5 for edge in range(1, len(capabilities))], minor=True)
        axes.set_yticks([edge - 0.5 for edge in range(1, len(task_types))], minor=True)
        axes.grid(which="minor", visible=True, color="white", linewidth=1.0)
        axes.tick_params(which="both", length=0)
        for side in axes.spines.values():
            side.set_visible(False)
    figure.colorbar(image, ax=list(panels), shrink=0.85, pad=0.015, label="% of slots")
    return figure
