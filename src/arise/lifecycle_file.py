"""A run's pool from birth to retirement as one JSON file: every pair ever made, every status, every verdict count.

`arise pool export` writes it; Frozen Rubrics and RuscaRL start from it. Iterations count from 1.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from arise.codec import from_json
from arise.errors import AriseError, Exit
from arise.store import RunReader
from arise.types import Pair, Pool, Rubric, Skill

FORMAT, VERSION = "arise-lifecycle", 1
STATUS_AFTER = {
    "born": "hidden",
    "imported": "hidden",
    "activate": "active",
    "refine": "active",
    "hide": "hidden",
    "retire": "retired",
    "reopen": "hidden",
}
Query = Callable[..., list[tuple[Any, ...]]]


def export(run: Path, out: Path | None = None) -> Path:
    """Write the lifecycle of a run, which may still be going on; gives the file's path."""
    target = out or run / "lifecycle.json"
    with RunReader.open(run) as reader:
        found = lifecycle(reader.query)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"format": FORMAT, "version": VERSION, "run": run.name} | found, indent=1) + "\n")
    return target


def lifecycle(query: Query) -> dict[str, Any]:
    """Everything that a run's store knows about its pairs, as JSON values."""
    histories = _histories(query)
    skills = defaultdict(list)
    for rubric_id, revision, k, text in query("SELECT rubric_id, revision, k, text FROM skills ORDER BY revision"):
        skills[rubric_id].append({"revision": revision, "iteration": k + 1, "text": text})
    verdicts = _verdicts(query)
    pairs = []
    for rubric_id, rubric in query("SELECT rubric_id, rubric FROM pairs ORDER BY rubric_id"):
        history = histories[rubric_id]
        retired = [event["iteration"] for event in history if event["event"] == "retire"]
        status = history[-1]["status"] if history else "hidden"
        pairs.append(
            {
                "rubric": json.loads(rubric),
                "skills": skills[rubric_id],
                "born": history[0]["iteration"] if history else 0,
                "retired": retired[-1] if status == "retired" else None,
                "status": status,
                "history": history,
                "verdicts": verdicts[rubric_id],
            }
        )
    ((iterations,),) = query("SELECT COUNT(*) FROM iterations")
    return {"iterations": iterations, "pairs": pairs}


def _histories(query: Query) -> dict[str, list[dict[str, Any]]]:
    histories: dict[str, list[dict[str, Any]]] = defaultdict(list)
    events = query("SELECT k, rubric_id, kind, passes, evaluations, revision, note FROM events ORDER BY k, seq")
    for k, rubric_id, kind, passes, evaluations, revision, note in events:
        counts = {"passes": passes, "evaluations": evaluations, "revision": revision, "note": note}
        event = {"iteration": k + 1, "event": kind, "status": STATUS_AFTER[kind]}
        histories[rubric_id].append(event | counts)
    return histories


def _verdicts(query: Query) -> dict[str, list[dict[str, Any]]]:
    counts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows = query(
        "SELECT rubric_id, k, shown, SUM(verdict IS 'pass'), SUM(verdict IS 'fail'), SUM(verdict IS 'not_applicable'),"
        " SUM(verdict IS NULL) FROM verdicts GROUP BY rubric_id, k, shown ORDER BY k, shown"
    )
    for rubric_id, k, shown, *numbers in rows:
        names = ("pass", "fail", "not_applicable", "absent")
        counts[rubric_id].append({"iteration": k + 1, "shown": bool(shown), **dict(zip(names, numbers, strict=True))})
    return counts


def starting_pool(path: Path) -> Pool:
    """The pool that holds every criterion of an exported life once, with its last skill, hidden.

    What is mastered, lost and found again is born under a new id with the same words; counted again, it would weigh
    as often in every reward and be shown as often.
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
    return Pool(tuple(pair for pair in pairs if pair in last.values()), version=1, born=len(pairs))


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
