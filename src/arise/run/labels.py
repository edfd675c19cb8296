"""Labels of evaluations: `before`, `k00020` during training, `after`, `retention/k00020`; users choose others."""

import re

_ON_THE_WAY = re.compile(r"k(\d+)")
_OF_THE_RUN = re.compile(r"before|after|k\d+|(retention|guidance)/.*")


def on_the_way(iteration: int) -> str:
    """Return the label of a point of the learning curve: `k00020` is iteration 20."""
    return f"k{iteration:05d}"


def of_retention(iteration: int) -> str:
    """Return the label of a checkpoint's attempts on the tasks of retired rubrics."""
    return f"retention/{on_the_way(iteration)}"


def point_of(label: str) -> int | None:
    """Return the iteration of a point of the learning curve; None for other evaluations."""
    found = _ON_THE_WAY.fullmatch(label)
    return int(found[1]) if found else None


def is_held_out(label: str) -> bool:
    """Return whether the tasks of an evaluation are held out; retention uses training tasks."""
    return not label.startswith("retention/")


def belongs_to_the_run(label: str) -> bool:
    """Return whether the label is reserved for the run's own evaluations."""
    return bool(_OF_THE_RUN.fullmatch(label))
