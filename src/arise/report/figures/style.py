"""Figure style: sizes of a two-column paper, a colour-blind safe palette, reproducible files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

WIDTH = 7.2
INK, SOFT = "#222222", "#8a8f98"

COLOURS = {
    "arise": "#D55E00",
    "outcome-only": "#5f6570",
    "frozen-rubrics": "#0072B2",
    "no-skill-injection": "#CC79A7",
    "no-adaptive-sampling": "#56B4E9",
    "vade-sampling": "#009E73",
    "vade": "#117733",
    "online-rubrics": "#E69F00",
    "ruscarl": "#882255",
    "all-guided": "#A63603",
    "ruscarl-advice": "#AA4499",
    "watch": "#332288",
}
"""The Okabe-Ito palette, extended with Tol's; a method has the same colour in every figure."""

SPARE = ("#0072B2", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#882255")


def colour(method: str, methods: Sequence[str]) -> str:
    """Return a method's colour; methods outside the paper use the spare colours in turn."""
    return COLOURS.get(method) or SPARE[list(methods).index(method) % len(SPARE)]


@contextmanager
def paper_style() -> Iterator[None]:
    """Apply the style to all figures drawn and saved in this context."""
    settings: Any = {
        "font.family": "DejaVu Sans",
        "font.size": 8.0,
        "axes.titlesize": 8.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": 8.0,
        "axes.edgecolor": SOFT,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e6e8eb",
        "grid.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "legend.fontsize": 7.5,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "svg.fonttype": "path",
        "svg.hashsalt": "arise",
        "pdf.fonttype": 42,
        "figure.constrained_layout.use": True,
    }
    with mpl.rc_context(settings):
        yield


def save(figure: Figure, folder: Path, name: str, formats: Sequence[str]) -> list[Path]:
    """Write a figure in every format; the same numbers produce the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    written = []
    for kind in formats:
        path = folder / f"{name}.{kind}"
        figure.savefig(path, dpi=200, metadata=undated.get(kind))
        written.append(path)
    return written
