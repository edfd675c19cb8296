"""The lifecycle of a run's pool as one JSON file: every pair, status and verdict count.

`arise pool export` writes it; Frozen Rubrics and RuscaRL start from it. Iterations count from 1.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arise.errors import AriseError, Exit
from arise.method.standing import standing
from arise.run.pool_rows import Event, PairLife, VerdictCount
from arise.run.reader import RunReader
from arise.types import Pair, Pool, Rubric, Skill
from arise.types.codec import from_json, to_json

FORMAT, VERSION = "arise-lifecycle", 1


def export(run: Path, out: Path | None = None) -> Path:
    """Write the lifecycle of a run, which may still be active; return the file's path."""
    target = out or run / "lifecycle.json"
    with RunReader.open(run) as reader:
        found = lifecycle(reader)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"format": FORMAT, "version": VERSION, "run": run.name} | found, indent=1) + "\n")
    return target


def lifecycle(run: RunReader) -> dict[str, Any]:
    """Return all stored facts about the pairs of a run as JSON values."""
    verdicts = defaultdict(list)
    for count in run.verdict_counts():
        verdicts[count.rubric_id].append(_counted(count))
    pairs = [_life(pair) | {"verdicts": verdicts[pair.rubric.id]} for pair in run.pairs()]
    return {"iterations": run.committed(), "pairs": pairs}


def _life(pair: PairLife) -> dict[str, Any]:
    return {
        "rubric": to_json(pair.rubric),
        "skills": [
            {"revision": skill.revision, "iteration": skill.iteration, "text": skill.text} for skill in pair.skills
        ],
        "born": pair.born,
        "retired": pair.retired,
        "status": pair.status,
        "stuck": pair.standing.stuck,
        "history": [_event(event, pair.events[: n + 1]) for n, event in enumerate(pair.events)],
    }


def _event(event: Event, life: Sequence[Event]) -> dict[str, Any]:
    """Return an event with the pair's status after it and the verdict counts of its window, all and unguided."""
    counts = ("passes", "evaluations", "unguided_passes", "unguided_evaluations", "revision", "note")
    head = {"iteration": event.iteration, "event": event.kind, "status": standing(life).status}
    return head | {name: getattr(event, name) for name in counts}


def _counted(count: VerdictCount) -> dict[str, Any]:
    return {
        "iteration": count.iteration,
        "shown": bool(count.shown),
        "pass": count.passes,
        "fail": count.fails,
        "not_applicable": count.not_applicable,
        "absent": count.absent,
    }


def starting_pool(path: Path) -> Pool:
    """Return the pool of an exported run: deduplicate criteria, keep the newest skill, hide all.

    In earlier versions, a criterion that was retired and lost again was added under a new id with the same text;
    without deduplication it would count several times in every reward.
    """
    remedy = f"arise pool export RUN --out {path}, or --set pool.lifecycle=FILE with a file it made"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT or content.get("version") != VERSION:
            raise ValueError(f"not a file of format {FORMAT}, version {VERSION}")
        pairs = tuple(_pair(item) for item in content["pairs"])
    except OSError as error:
        raise _unusable(path, f"cannot be read ({error.strerror})", remedy) from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise _unusable(path, f"is not usable: {error}", remedy) from None
    if not pairs:
        raise _unusable(path, "holds no pair: that run made none", "export a longer ARISE run")
    last = {" ".join(pair.rubric.criteria_text.casefold().split()): pair for pair in pairs}
    # A run that was itself started from such a file has gaps in its ids, so continue after the highest one.
    numbers = [int(pair.rubric.id[1:]) for pair in pairs if re.fullmatch(r"r\d+", pair.rubric.id)]
    born = max(len(pairs), *numbers)
    return Pool(tuple(pair for pair in pairs if pair in last.values()), version=1, born=born)


def _pair(item: dict[str, Any]) -> Pair:
    skill = item["skills"][-1]
    return Pair(from_json(Rubric, item["rubric"]), Skill(skill["text"], revision=skill["revision"]))


def _unusable(path: Path, problem: str, remedy: str) -> AriseError:
    return AriseError(
        "config",
        Exit.CONFIG,
        f"pool.lifecycle: {path} {problem}; this method starts from the rubrics of an ARISE run",
        "nothing was started",
        remedy,
    )
