"""The ten-second test: the Overview's text alone names what is weakest, what got worse and what failed.

Expected names come from the raw attempts in the database, counted here and not by the facts under test.
"""

import json
import re
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from benchmarks.big_run import held_out
from fastapi.testclient import TestClient

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.store import RunStore
from tests.dashboard.test_pages import text_of
from tests.regressing_run import judged

Counts = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def measured(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which behaviours rise and fall, one criterion was born twice, and some evaluations stand apart."""
    folder, random = tmp_path_factory.mktemp("runs") / "told", np.random.default_rng(5)
    shutil.copytree(run, folder)
    with closing(RunStore.open(folder)) as store:
        ids = [rubric.id for rubric in store.rubrics()]
        before, after = ({rubric: float(random.uniform(0.05, 0.95)) for rubric in ids} for _ in range(2))
        store.save_attempts(judged("before", 0, before, random))
        store.save_attempts(judged("after", store.committed(), after, random))
        store.save_attempts([("by-hand", *row[1:]) for row in held_out("x", 20, 0.9, random)[:6]])
        lost = [("lost", *row[1:6], None, None, "fault", "sandbox", 0, "{}") for row in held_out("x", 20, 0.9, random)]
        store.save_attempts(lost[:4])
    with closing(sqlite3.connect(folder / "run.db")) as db, db:
        first, second = ids[:2]
        ((text,),) = db.execute("SELECT rubric FROM pairs WHERE rubric_id=?", (first,))
        twin = json.loads(text) | {"id": second}
        db.execute("UPDATE pairs SET rubric=? WHERE rubric_id=?", (json.dumps(twin), second))
    return folder


@pytest.fixture(scope="module")
def overview(measured: Path) -> str:
    client = TestClient(create_app(Catalogue.of([measured])), base_url="http://127.0.0.1")
    return client.get("/runs/told").text


def section(page: str, name: str) -> str:
    found = re.search(rf'<section[^>]* id="{name}">(.*?)</section>', page, re.DOTALL)
    return text_of(found[1]) if found else ""


def raw_counts(folder: Path, label: str) -> Counts:
    """Count criteria and task types in the raw attempts: name to (passes, attempts that count)."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with closing(sqlite3.connect(folder / "run.db")) as db:
        pairs = db.execute("SELECT rubric_id, rubric FROM pairs ORDER BY born, rubric_id").fetchall()
        newest = {json.loads(rubric)["criteria_text"]: rubric_id for rubric_id, rubric in pairs}
        wanted = "SELECT task_type, success, verdicts FROM attempts WHERE label=?"
        for task_type, success, text in db.execute(wanted, (label,)):
            counts[f"task type {task_type}"][0] += success
            counts[f"task type {task_type}"][1] += 1
            verdicts = json.loads(text)
            for criterion, rubric_id in newest.items():
                if verdicts.get(rubric_id) in ("pass", "fail"):
                    counts[criterion][0] += verdicts[rubric_id] == "pass"
                    counts[criterion][1] += 1
    return {name: (passes, tried) for name, (passes, tried) in counts.items()}


def test_the_three_weakest_behaviours_are_named_first_and_with_their_counts(measured: Path, overview: str) -> None:
    after = raw_counts(measured, "after")
    behaviours = {name: count for name, count in after.items() if not name.startswith("task type")}
    weakest = sorted(behaviours, key=lambda name: behaviours[name][0] / behaviours[name][1])[:3]
    told = section(overview, "still-wrong")
    places = [told.index(name) for name in weakest]
    assert places == sorted(places)
    for name in weakest:
        passes, tried = behaviours[name]
        assert f"{name} unguided {100 * passes / tried:.1f} % ({passes} of {tried})" in told


def test_every_regression_of_the_raw_attempts_is_named_and_nothing_else(measured: Path, overview: str) -> None:
    before, after = raw_counts(measured, "before"), raw_counts(measured, "after")
    rate = {name: (before[name][0] / before[name][1], after[name][0] / after[name][1]) for name in before}
    fell = {name for name, (first, last) in rate.items() if last < first}
    told = section(overview, "worse")
    assert len(fell) > 3
    assert {name for name in rate if name in told} == fell
    for name in fell:
        assert f"{100 * rate[name][0]:.1f} % → {100 * rate[name][1]:.1f} %" in told


def test_the_headline_is_the_held_out_change_with_its_interval(measured: Path, overview: str) -> None:
    told = section(overview, "held-out-change")
    with closing(sqlite3.connect(measured / "run.db")) as db:
        rates = dict(db.execute("SELECT label, 100.0 * AVG(success) FROM attempts GROUP BY label"))
    assert f"{rates['before']:.1f} % → {rates['after']:.1f} %" in told
    assert re.search(r"[+-]\d+\.\d points \(95 % [+-]\d+\.\d to [+-]\d+\.\d\), (within|beyond) noise", told)


def test_identical_criteria_are_one_row_under_the_newest_rubric(measured: Path, overview: str) -> None:
    with closing(sqlite3.connect(measured / "run.db")) as db:
        ((text,),) = db.execute("SELECT rubric FROM pairs WHERE rubric_id='r002'")
    twice = json.loads(text)["criteria_text"]
    told = [section(overview, name) for name in ("still-wrong", "worse", "improved")]
    assert max(text.count(twice) for text in told) == 1
    assert not [text for text in told if "r001" in text]


def test_the_page_has_alarms_and_separates_other_evaluations(overview: str) -> None:
    assert "No alarms." not in overview
    text = text_of(overview)
    assert "Something got worse" in text
    assert "Evaluations without a result" in text
    others = section(overview, "other-evaluations")
    assert re.search(r"by-hand: \d+\.\d % \(\d of 6, 95 % ", others)
    assert "lost: no result infrastructure ended all 4 attempts" in others
    assert "by-hand" not in section(overview, "held-out-change")
