"""Draw all figures of a study into a folder, each with its caption."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from arise.report.comparison.document import Picture
from arise.report.comparison.measures import Study
from arise.report.figures import FORMATS, allocation, dynamics, efficiency, retention, timing
from arise.report.figures.style import paper_style, save
from arise.text.progress import Progress

log = logging.getLogger(__name__)

FIGURES: dict[str, tuple[Callable[[Study], Figure | None], str]] = {
    "figure-3": (
        efficiency.ablations_and_efficiency,
        "Figure 3. (a) Final held-out pass rate: bar = mean over seeds, line = 95 % interval over seeds, dots = seeds. "
        "(b) Held-out pass rate over training, mean over seeds with 95 % band; dotted: where outcome-only ends.",
    ),
    "figure-4": (
        dynamics.feedback_and_exploration,
        "Figure 4. (a) Rubrics active, added and retired at each pool update. (b) Mean rubric reward and verified pass "
        "rate of training rollouts, in windows of one pool update. (c) Groups whose rollouts all fail, by third of the "
        "run, every task that both methods drew weighing the same.",
    ),
    "figure-5": (
        allocation.sampling_by_stage,
        "Figure 5. Share of adaptive slots by task type and capability in three stages, discovery left out; grey: "
        "never drawn.",
    ),
    "figure-6": (
        retention.retention_after_retirement,
        "Figure 6. Retired rubrics on their fixed tasks: open diamond = training window at retirement, dots = later "
        "checkpoints without guidance; dotted: 0.9.",
    ),
    "curves": (
        efficiency.every_curve,
        "Held-out pass rate over training, one panel a method: mean over seeds with 95 % band; dashed: ARISE and "
        "outcome-only.",
    ),
    "time": (timing.time_of_an_iteration, "Time of an iteration: mean, and 95 % interval over seeds."),
}


def draw(study: Study, folder: Path, formats: Sequence[str] = FORMATS) -> list[Picture]:
    """Draw the figures that the runs have data for; return their pictures."""
    pictures = []
    with Progress(log, "drawing figures", len(FIGURES)) as wait, paper_style():
        for name, (make, caption) in FIGURES.items():
            figure = make(study)
            if figure is not None:
                save(figure, folder, name, formats)
                pictures.append(Picture(folder / f"{name}.svg", caption))
            wait.add()
    return pictures
