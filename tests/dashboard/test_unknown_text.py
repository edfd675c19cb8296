"""Text in the store that this version does not know: shown as it is, or told in one message."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from benchmarks.big_run import write_run
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue

PAGES = ("", "/pool", "/pool/r001", "/sampler", "/sampler?iteration=3", "/tasks", "/rollouts", "/judge", "/evaluation",
         "/health")  # fmt: skip
COMMANDS = ("verify {run}", "pool ls {run} --all", "pool show {run} r001", "pool diff {run} r001", "runs {runs}",
            "pool export {run} --out {out}.json", "sampler why {run} 3", "export {run} --format jsonl --out {out}",
            "export {run} --format atif --out {out}", "export {run} --format skills --out {out}",
            "view {run} --export {out}.html")  # fmt: skip
SHOWN = {
    "a stop reason": "UPDATE rollouts SET stop='sandbox_lost'",
    "an event": "UPDATE events SET kind='merged' WHERE kind='activate'",
    "a verdict": "UPDATE verdicts SET verdict='maybe'",
    "a path of a draw": "UPDATE draws SET path='psychic'",
    "a verdict of an evaluation": """UPDATE attempts SET verdicts='{"r001": "maybe"}'""",
}
"""Words that a page can show without knowing them."""
TOLD = {
    "no event that is known": "UPDATE events SET kind='merged'",
    "metrics that are no JSON": "UPDATE iterations SET metrics='{'",
    "metrics that are a list": "UPDATE iterations SET metrics='[]'",
    "metrics of another type": """UPDATE iterations SET metrics='{"pass_rate": "x", "pool": null}'""",
    "a capability": "UPDATE pairs SET rubric=replace(rubric, 'Verification', 'Telepathy')",
    "an empty rubric": "UPDATE pairs SET rubric='{}'",
    "a draw": "UPDATE draws SET details='{'",
    "verdicts that are a list": "UPDATE attempts SET verdicts='[]'",
    "a proposal": "UPDATE proposals SET content='{'",
    "evidence": "UPDATE evidence SET record='{'",
    "task types": "UPDATE tasks SET task_types='5'",
    "an outcome": "UPDATE rollouts SET success=2",
    "a chunk": "UPDATE rollouts SET chunk='none.zst'",
    "a clock time": "UPDATE iterations SET at='noon'",
    "a state": "UPDATE iterations SET state=x'00'",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run short enough to be exported in every format, many times."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    write_run(folder, iterations=20, tasks=2, group=4)
    return folder


def changed(run: Path, tmp_path: Path, sql: str) -> Path:
    folder = tmp_path / "runs" / "first"
    shutil.copytree(run, folder)
    with closing(sqlite3.connect(folder / "run.db")) as db:
        assert db.execute(sql).rowcount > 0, "nothing was changed"
        db.commit()
    return folder


def statuses(folder: Path) -> dict[str, int]:
    client = TestClient(create_app(Catalogue.of([folder.parent])), base_url="http://127.0.0.1")
    with closing(sqlite3.connect(folder / "run.db")) as db:
        rollout, task = db.execute("SELECT id, task_id FROM rollouts LIMIT 1").fetchone()
    pages = (*PAGES, f"/rollouts/{rollout}", f"/raw/{rollout}", f"/tasks/{task}")
    found = {page: client.get(f"/runs/first{page}") for page in pages} | {"all": client.get("/")}
    for page, answer in found.items():
        assert answer.status_code in (200, 409), (page, answer.text)
        if answer.status_code == 409:
            assert "arise verify" in answer.text
    return {page: answer.status_code for page, answer in found.items()}


def run_commands(folder: Path, out: Path) -> None:
    for words in COMMANDS:
        done = CliRunner().invoke(app, words.format(run=folder, runs=folder.parent, out=out).split())
        assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)


@pytest.mark.parametrize("name", SHOWN)
def test_an_unknown_word_is_shown(run: Path, tmp_path: Path, name: str) -> None:
    folder = changed(run, tmp_path, SHOWN[name])
    assert set(statuses(folder).values()) == {200}
    run_commands(folder, tmp_path / "out")


@pytest.mark.parametrize("name", TOLD)
def test_unreadable_stores_are_one_message(run: Path, tmp_path: Path, name: str) -> None:
    folder = changed(run, tmp_path, TOLD[name])
    statuses(folder)
    run_commands(folder, tmp_path / "out")


@pytest.mark.parametrize("text", ["[train\n", "train = 3\npool = 1\n", "[train]\niterations = 'x'\n"])
def test_a_configuration_that_cannot_be_read_is_one_message(run: Path, tmp_path: Path, text: str) -> None:
    folder = changed(run, tmp_path, "UPDATE sessions SET owner = ''")
    (folder / "config.toml").write_text(text)
    statuses(folder)
    run_commands(folder, tmp_path / "out")
