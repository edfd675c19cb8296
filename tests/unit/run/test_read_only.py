"""A run on a disk that cannot be written: everything that only reads works, and the rest says what it needs."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from arise.run.calls import Recorded, Store, Usage
from arise.run.store import RunStore
from tests.stored_runs import write_run

CALL = "from arise.cli.main import main; main()"
PAGES = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
client = TestClient(create_app(Catalogue.of([Path(sys.argv[1])])), base_url="http://127.0.0.1")
for page in ("", "/pool", "/sampler", "/tasks", "/rollouts", "/judge", "/evaluation", "/health"):
    assert client.get(f"/runs/run{page}").status_code == 200, page
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("disk") / "run"
    write_run(folder, 4)
    with closing(Store(folder / "calls.db")) as calls:
        calls.put(
            "key", Recorded(text="", finish="", model="m", fingerprint="", template_hash="", usage=Usage()), "judge", 5
        )
    return folder


def unwritable(disk: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command that sees `disk` mounted read-only; the mount ends with it."""
    script = 'mount --bind -o ro "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/x" 2>/dev/null && exec "$@"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(disk), *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def arise(disk: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return unwritable(disk, sys.executable, "-c", CALL, *words)


@pytest.mark.parametrize(
    "words",
    ["verify {run}", "pool ls {run}", "pool show {run} r001", "sampler why {run} 2", "runs {disk}",
     "export {run} --format jsonl --out {out}", "pool export {run} --out {out}.json", "view {run} --export {out}.html"],
)  # fmt: skip
def test_reading_needs_no_writing(run: Path, tmp_path: Path, words: str) -> None:
    filled = words.format(run=run, disk=run.parent, out=tmp_path / "out").split()
    done = arise(run.parent, *filled)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_opens(run: Path) -> None:
    done = unwritable(run.parent, sys.executable, "-c", PAGES, str(run))
    assert done.returncode == 0, done.stderr


def test_commands_that_write_fail_with_one_message(run: Path) -> None:
    for words in (
        ["export", str(run), "--format", "jsonl"],
        ["pool", "export", str(run)],
        ["eval", str(run), "--base"],
    ):
        done = arise(run.parent, *words)
        assert done.returncode == 5, done.stderr
        assert "Traceback" not in done.stderr
        assert "Read-only file system" in done.stderr
    done = arise(run.parent, "train", "--run-dir", str(run.parent / "new"))
    assert done.returncode == 5
    assert "no run was started" in done.stderr
    assert "iteration" not in done.stderr


@pytest.mark.parametrize("index", [True, False])
def test_commits_that_only_the_log_holds_are_read_or_asked_for(run: Path, tmp_path: Path, index: bool) -> None:
    """A run that was killed: without its index file SQLite would have to write one before it may read the log."""
    killed = tmp_path / "killed"
    shutil.copytree(run, killed)
    with closing(RunStore.open(killed)) as store:
        store.note({"weights": "of the log"})
        copy = tmp_path / "disk" / "run"
        shutil.copytree(killed, copy)
        assert (copy / "run.db-wal").stat().st_size > 0
    if not index:
        (copy / "run.db-shm").unlink()
    done = arise(copy.parent, "verify", str(copy), "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    if index:
        assert done.returncode == 0, checks
    else:
        assert list(checks) == ["database"], "one reason, not one for every check"
        assert "make it writable once, or copy the folder" in checks["database"]["problems"][0]
        said = arise(copy.parent, "pool", "ls", str(copy)).stderr
        assert "run.db-wal holds commits that are not in run.db yet" in said
    with closing(sqlite3.connect(copy / "run.db")) as db:
        assert db.execute("SELECT value FROM meta WHERE key='weights'").fetchone() == ("of the log",)
