"""Compare findings with human labels: `python -m benchmarks.analyze_labels --trail DIR --who-and-when DIR`.

Offline detectors, or with `--scripted-judge` a stand-in judge (`benchmarks/keyword_judge.py`). A finding predicts the
turns it names; a label names a turn. None of the data is shipped.

Every set is cut in two by a digest of the file's name. The half `held out` is only ever scored: nobody reads its traces
or findings while working on detectors. Look at the half `open`.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from arise.analyze.conversation import Conversation
from arise.analyze.files import Unreadable, load
from arise.analyze.found import Found
from arise.analyze.messages import add_messages
from arise.analyze.readers.spans import model_spans
from arise.analyze.scan import Scan
from arise.compose.analyze import detect
from benchmarks.keyword_judge import judged

SCRIPTED: list[int] = []
"""Findings that the scripted judge lost for their quotes, one entry per trace; empty without it."""


@dataclass(frozen=True)
class Case:
    """One trace: turns that findings name, turns that labels name, and the number of its last turn."""

    predicted: frozenset[int]
    labelled: frozenset[int]
    last: int
    half: str


def half_of(file: Path) -> str:
    """`open` or `held out`, by the name of a trace's file."""
    return ("open", "held out")[blake2b(file.name.encode(), digest_size=1).digest()[0] % 2]


def predicted(found: Found) -> frozenset[int]:
    """The turns of all findings; one about the whole attempt counts as its last turn."""
    if SCRIPTED:
        turns, dropped = judged(found)
        SCRIPTED.append(dropped)
        return turns
    last = len(found.trajectory.turns)
    seen = [sighting for sighting in detect(found) if sighting.present]
    return frozenset(turn for sighting in seen for turn in (sighting.turn or last, *sighting.also))


def trail(folder: Path, split: str) -> Iterator[Case]:
    """TRAIL: errors on spans; only those on model calls are turns here."""
    labels = "processed_annotations_gaia" if split == "GAIA" else "processed_annotations_swe_bench"
    for file in sorted((folder / "data" / split).glob("*.json")):
        try:
            errors = load(folder / labels / file.name)["errors"]
            turn_of = {name: place for place, name in enumerate(model_spans(file), start=1)}
        except (Unreadable, KeyError):
            continue
        for found in Scan([file]):
            places = frozenset(turn_of[error["location"]] for error in errors if error["location"] in turn_of)
            yield Case(predicted(found), places, len(found.trajectory.turns), half_of(file))


def who_and_when(folder: Path, split: str) -> Iterator[Case]:
    """Who&When: one decisive message per failed conversation."""
    for file in sorted((folder / split).glob("*.json")):
        row = load(file)
        until = Conversation()
        add_messages(until, row["history"][: int(row["mistake_step"]) + 1])
        for found in Scan([file]):
            place = frozenset((max(1, len(until.drafts)),))
            yield Case(predicted(found), place, len(found.trajectory.turns), half_of(file))


def agent_rx(folder: Path) -> Iterator[Case]:
    """AgentRx on Magentic-One: several labelled messages per failed conversation."""
    for entry in load(folder / "ground_truth" / "magentic_one_ground_truth.json"):
        file = folder / "magentic_dataset" / f"{entry['trajectory_id']}.json"
        if not file.is_file():
            continue
        row = load(file)
        messages = row if isinstance(row, list) else next(value for value in row.values() if isinstance(value, list))
        for found in Scan([file]):
            places = set()
            for failure in entry["failures"]:
                until = Conversation()
                add_messages(until, messages[: int(failure["step_number"])])
                places.add(max(1, len(until.drafts)))
            yield Case(predicted(found), frozenset(places), len(found.trajectory.turns), half_of(file))


def scores(cases: list[Case], within: int) -> dict[str, Any]:
    """Precision and recall over turns, a label being met within so many turns; and of naming the last turn only."""

    def rates(pairs: list[tuple[frozenset[int], frozenset[int]]]) -> dict[str, Any]:
        near = [(sum(any(abs(p - x) <= within for x in b) for p in a), len(a)) for a, b in pairs]
        met = [(sum(any(abs(x - p) <= within for p in a) for x in b), len(b)) for a, b in pairs]
        hits, said, found, known = (sum(column) for column in (*zip(*near, strict=True), *zip(*met, strict=True)))
        return {
            "predicted": said, "labelled": known,
            "precision": round(hits / said, 3) if said else None, "recall": round(found / known, 3) if known else None,
        }  # fmt: skip

    naive = rates([(frozenset((case.last,)), case.labelled) for case in cases])
    return rates([(case.predicted, case.labelled) for case in cases]) | {
        "traces": len(cases), "within": within, "last_turn_precision": naive["precision"],
        "last_turn_recall": naive["recall"],
    }  # fmt: skip


def main() -> None:
    """Print one JSON line per set and tolerance."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--trail", "--who-and-when", "--agent-rx"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--scripted-judge", action="store_true")
    options = parser.parse_args()
    SCRIPTED.extend([0] if options.scripted_judge else [])
    sets: list[tuple[str, Iterator[Case]]] = []
    if options.trail:
        sets += [(f"TRAIL {split}", trail(options.trail, split)) for split in ("GAIA", "SWE Bench")]
    if options.who_and_when:
        sets += [
            (f"Who&When {s}", who_and_when(options.who_and_when, s)) for s in ("Hand-Crafted", "Algorithm-Generated")
        ]
    if options.agent_rx:
        sets.append(("AgentRx Magentic-One", agent_rx(options.agent_rx)))
    for name, cases in sets:
        whole = list(cases)
        for part in ("all", "open", "held out"):
            cases_of = [case for case in whole if part in ("all", case.half)]
            for within in (0, 1) if cases_of else ():
                row = {"set": name, "part": part, "dropped_quotes": sum(SCRIPTED)} | scores(cases_of, within)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
