"""Held-out evaluations, the curve between them, and retired behaviours on trained tasks: never mixed up."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from benchmarks.big_run import held_out, write_run
from fastapi.testclient import TestClient

from arise.evaluation.retention import Retired, retired
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.labels import of_retention, on_the_way
from arise.run.store import RunStore
from tests.dashboard.test_pages import table, text_of

ITERATIONS = 70


def client_of(folder: Path) -> TestClient:
    return TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "long"
    write_run(folder, iterations=ITERATIONS, tasks=4, group=4)
    return folder


@pytest.fixture(scope="module")
def measured(long: Path) -> tuple[Path, Retired]:
    """The run measured on the way, and the first of its behaviours that stayed retired, tried again at the end."""
    folder, random = long.parent / "measured", np.random.default_rng(3)
    shutil.copytree(long, folder)
    with closing(RunStore.open(folder)) as store:
        for iteration in (20, 40):
            store.save_attempts(held_out(on_the_way(iteration), iteration, 0.3, random))
        gone = next(item for item in retired(store) if item.away_at(ITERATIONS))
        verdicts = json.dumps({gone.rubric.id: "pass"})
        label = of_retention(ITERATIONS)
        tail = (1, 1.0, "finished", "", 0, verdicts)
        store.save_attempts([(label, task_id, 0, ITERATIONS, "data", "", *tail) for task_id in gone.task_ids])
    return folder, gone


def test_the_overview_names_the_ends_and_draws_the_way(measured: tuple[Path, Retired]) -> None:
    client = client_of(measured[0])
    headline = re.search(r'<section class="headline"(.*?)</section>', client.get("/runs/measured").text, re.DOTALL)
    assert headline
    assert re.findall(r"(before|after|k\d+|retention\S*) \d+ of", text_of(headline[1])) == ["before", "after"]
    rows = table(client, "/runs/measured?csv=held-out")
    assert [row["evaluation"] for row in rows] == ["before", "k00020", "k00040", "after"]
    assert [row["iteration"] for row in rows] == ["0", "20", "40", "70"]


def test_the_newest_point_is_named_while_training_goes_on(tmp_path: Path) -> None:
    folder, random = tmp_path / "going", np.random.default_rng(3)
    write_run(folder, iterations=20, tasks=4, group=4)
    with closing(sqlite3.connect(folder / "run.db")) as db, db:
        db.execute("DELETE FROM attempts WHERE label='after'")
    with closing(RunStore.open(folder)) as store:
        for iteration in (10, 20):
            store.save_attempts(held_out(on_the_way(iteration), iteration, 0.3, random))
    page = text_of(client_of(folder).get("/runs/going/evaluation?csv=domains").text)
    assert "k00020" in page
    assert "k00010" not in page


def test_attempts_at_trained_tasks_are_no_held_out_score(measured: tuple[Path, Retired]) -> None:
    folder, gone = measured
    client = client_of(folder)
    assert {row["evaluation"] for row in table(client, "/runs/measured/evaluation?csv=domains")} == {"before", "after"}
    page = text_of(client.get("/runs/measured/evaluation").text)
    assert "retention/" not in page
    assert f"{ITERATIONS}: 100.0 % of {len(gone.task_ids)}" in page
    assert "retention/" not in text_of(client.get(f"/runs/measured/pool/{gone.rubric.id}").text)
    assert "retention/" not in text_of(client.get("/compare?run=measured").text)


def test_a_run_that_was_not_tried_again_says_how(long: Path) -> None:
    page = text_of(client_of(long).get("/runs/long/evaluation").text)
    assert "Not measured yet: arise retention" in page
