"""One function says where a pair stands: store, screen, export and page agree, also after a pair came back."""

import json
import re
import sqlite3
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.report.exports import export
from arise.run.reader import RunReader
from arise.run.verify import verify
from tests.pool_lives import WINDOWS, write_life

STANDS = ["hidden", "shown", "shown", "shown", "shown", "shown, stuck", "hidden", "retired", "hidden", "shown"]
"""Where r001 stands after each window."""


def answered(*words: str) -> Any:
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0, found.output
    return json.loads(found.output)


def page_of(folder: Path, address: str) -> str:
    client = TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")
    html = client.get(f"/runs/{folder.name}{address}").text
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))


@pytest.mark.parametrize("windows", range(1, len(WINDOWS) + 1))
def test_every_reader_gives_the_same_status(tmp_path: Path, windows: int) -> None:
    folder, stands = tmp_path / "run", STANDS[windows - 1]
    write_life(folder, windows)
    status, stuck = stands.removesuffix(", stuck"), stands.endswith(", stuck")
    with RunReader.open(folder) as run:
        (pair,) = run.pairs()
        assert (str(pair.standing), pair.status) == (stands, status)
        assert pair.retired_at == (15 if status == "retired" else None)
    (listed,) = answered("pool", "ls", str(folder), "--all")
    retired = 16 if status == "retired" else None
    assert (listed["status"], listed["stuck"], listed["retired"]) == (status, stuck, retired)
    shown = CliRunner().invoke(app, ["pool", "show", str(folder), "r001"]).output
    assert shown.startswith(f"r001  {stands}  ")
    plain = CliRunner().invoke(app, ["pool", "ls", str(folder)]).output
    assert (f"r001    {stands}  " in plain) == (status != "retired")
    answered("pool", "export", str(folder))
    (life,) = json.loads((folder / "lifecycle.json").read_text())["pairs"]
    assert (life["status"], life["stuck"], life["retired"]) == (status, stuck, listed["retired"])
    assert [event["status"] for event in life["history"]] == [s.removesuffix(", stuck") for s in STANDS[:windows]]
    export(folder, "jsonl", tmp_path / "out")
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "pairs.jsonl").read_text().splitlines()]
    assert (row["status"], row["stuck"]) == (status, stuck)
    assert f" now {stands} " in page_of(folder, "/pool/r001")
    assert "criterion one" in page_of(folder, f"/pool?status={status}")
    others = {"hidden", "shown", "retired"} - {status}
    assert not any("criterion one" in page_of(folder, f"/pool?status={other}") for other in others)
    assert ("criterion one" in page_of(folder, "/pool?status=stuck")) == stuck
    assert [check for check in verify(folder) if not check.passed] == []


def test_how_it_was_after_any_iteration(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_life(folder)
    for window, stands in enumerate(STANDS, start=1):
        (facts,) = answered("pool", "ls", str(folder), "--all", "--at", str(2 * window))
        assert (facts["status"] + ", stuck" * facts["stuck"]) == stands
        assert facts["retired"] == (16 if stands == "retired" else None)


def test_both_counts_of_every_decision_are_read_back(tmp_path: Path) -> None:
    happened = write_life(tmp_path / "run")
    with RunReader.open(tmp_path / "run") as run:
        found = run.events()
        assert run.events("r001") == found
    assert [(e.passes, e.evaluations, e.unguided_passes, e.unguided_evaluations) for e in found] == [
        (e.passes, e.evaluations, e.unguided_passes, e.unguided_evaluations) for e in happened
    ]
    hidden = next(event for event in found if event.kind == "hide")
    assert (hidden.passes, hidden.evaluations, hidden.unguided_passes, hidden.unguided_evaluations) == (8, 16, 0, 8)
    assert hidden.guided == (8, 8)


def test_both_rates_are_shown_wherever_a_rate_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_life(folder, 7)
    listed = CliRunner().invoke(app, ["pool", "ls", str(folder)]).output
    assert re.search(r"pass rate +unguided", listed)
    assert re.search(r"50\.0 % \(4 of 8\) +0 of 4", listed)
    shown = CliRunner().invoke(app, ["pool", "show", str(folder), "r001"]).output
    assert "skill hidden        50.0 % (8 of 16), unguided 0.0 % (0 of 8)" in shown
    assert "skill shown         0.0 % (0 of 8)\n" in shown, "nobody was guided"
    changed = CliRunner().invoke(app, ["pool", "diff", str(folder), "r001"]).output
    assert "pass rate 12.5 % before, 50.0 % after (unguided 0.0 % and 0.0 %)" in changed
    page = page_of(folder, "/pool/r001")
    assert "passed unguided, training 0.0 % n = 8 passed with its skill, training " in page
    assert "8 of 16 passed (50.0 %), unguided 0 of 8 (0.0 %)" in page
    assert "pass rate before 12.5 % (n = 16; unguided 0.0 %), after 50.0 % (n = 16; unguided 0.0 %)" in page


@pytest.mark.parametrize(
    ("change", "check", "said"),
    [
        (
            "UPDATE verdicts SET k = 16 WHERE rollout_id = 'k18/task-0/0'",
            "verdicts",
            "verdicts of r001 in iteration 17, when it was not in the pool",
        ),
        (
            "DELETE FROM events WHERE kind = 'reopen'",
            "verdicts",
            "verdicts of r001 in iteration 19, when it was not in the pool",
        ),
        ("DELETE FROM events WHERE kind = 'reopen'", "lives", "r001, activate in iteration 20: it is not in the pool"),
        (
            "UPDATE verdicts SET k = 1 WHERE rollout_id = 'k2/task-0/0'",
            "verdicts",
            "verdicts of r001 in iteration 2, when it was not in the pool",
        ),
    ],
)
def test_a_retired_pair_returns_by_a_reopening_only(tmp_path: Path, change: str, check: str, said: str) -> None:
    write_life(tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as db:
        db.execute(change)
        db.commit()
    problems = {found.name: found.problems for found in verify(tmp_path / "run")}
    assert said in problems[check]


def test_the_pool_grows_again_when_a_pair_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_life(folder)
    client = TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")
    rows = client.get("/runs/run/pool?csv=timeline").text.split()
    assert [line.split(",")[1:] for line in rows if line[0].isdecimal()] == [
        ["1", "0", "1"],
        ["0", "1", "0"],
        ["1", "0", "1"],
    ]
    windows = client.get("/runs/run/pool/r001?csv=windows").text.splitlines()[1:]
    assert [line.split(",")[0] for line in windows] == [f"{2 * n + 1}-{2 * n + 2}" for n in (1, 2, 3, 4, 5, 6, 7, 9)]


def test_a_refinement_that_found_nothing_to_write_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_life(folder, 4)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        db.execute("UPDATE events SET note = 'skill unchanged: every wording was tried' WHERE k = 7")
        db.commit()
    shown = CliRunner().invoke(app, ["pool", "show", str(folder), "r001"]).output
    assert "after    6  skill rewritten     12.5 % (2 of 16), unguided 0.0 % (0 of 8)\n" in shown
    assert (
        "after    8  skill not rewritten 12.5 % (2 of 16), unguided 0.0 % (0 of 8)  "
        "skill unchanged: every wording was tried" in shown
    )
    assert "skill not rewritten after iteration 8" in page_of(folder, "/pool/r001")
