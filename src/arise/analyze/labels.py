"""Compare the verdicts of an analysis with human labels: kappa, precision and recall per behaviour."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from arise.analyze.behaviours import AnalysedAttempt
from arise.analyze.statistics import Agreement
from arise.errors import AriseError, Exit

COLUMNS = ("source", "behaviour", "present")
_YES, _NO = {"1", "true", "yes", "present", "fail"}, {"0", "false", "no", "absent", "pass"}
Labels = Mapping[tuple[str, str], bool]
"""Whether a behaviour is present, by (source, behaviour)."""


def read_labels(path: Path) -> dict[tuple[str, str], bool]:
    """Read labels from a CSV file with the columns source, behaviour, present."""
    found: dict[tuple[str, str], bool] = {}
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = csv.DictReader(stream)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise _refused(f"{path}: column {missing[0]} is missing")
        for number, row in enumerate(rows, start=2):
            said = (row["present"] or "").strip().lower()
            if said not in _YES | _NO:
                raise _refused(f"{path}:{number}: present is {row['present']!r}, expected 1 or 0")
            found[(row["source"] or "").strip(), (row["behaviour"] or "").strip()] = said in _YES
    if not found:
        raise _refused(f"{path}: no label in it")
    return found


def agreement(attempts: Sequence[AnalysedAttempt], labels: Labels) -> dict[str, Agreement]:
    """Compare our verdicts with labels, per behaviour and overall.

    A behaviour that did not apply counts as absent; one that a judge left without a verdict is left out.

    A label identifies an attempt by its source or by a suffix of it, so that a file can be labelled by its name.
    """
    counts: dict[str, list[int]] = {}
    for (source, behaviour), present in sorted(labels.items()):
        attempt = next((a for a in attempts if a.source == source or a.source.endswith(f"/{source}")), None)
        if attempt is None or behaviour in attempt.unjudged:
            continue
        ours = attempt.present.get(behaviour, False)
        place = {(True, True): 0, (True, False): 1, (False, True): 2, (False, False): 3}[ours, present]
        for name in (behaviour, "all"):
            counts.setdefault(name, [0, 0, 0, 0])[place] += 1
    return {name: Agreement(*cells) for name, cells in sorted(counts.items())}


def unmatched(attempts: Sequence[AnalysedAttempt], labels: Labels) -> list[str]:
    """Return the sources of labels that no attempt has."""
    known = [attempt.source for attempt in attempts]
    sources = sorted({source for source, _ in labels})
    return [name for name in sources if not any(s == name or s.endswith(f"/{name}") for s in known)]


def _refused(what: str) -> AriseError:
    return AriseError(
        "labels", Exit.CONFIG, what, "no agreement was computed",
        "give a CSV with the columns source,behaviour,present, one label per line, as in runs/a.json,P02,1",
    )  # fmt: skip
