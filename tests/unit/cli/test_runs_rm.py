"""`arise runs rm` deletes run folders and nothing else."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.errors import Exit
from arise.run.folder import claim
from tests.synthetic_runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "runs" / "first", seed=0, success=lambda *_: True, iterations=2)


def test_it_asks_and_deletes_on_yes(run: Path) -> None:
    refused = CliRunner().invoke(app, ["runs", "rm", str(run)], input="n\n")
    assert refused.exit_code == 1, refused.output
    assert run.is_dir()
    done = CliRunner().invoke(app, ["runs", "rm", str(run)], input="y\n")
    assert done.exit_code == 0, done.output
    assert f"{run} is deleted" in done.output
    assert not run.exists()
    assert run.parent.is_dir()


def test_a_locked_run_is_refused(run: Path) -> None:
    lock = claim(run)
    done = CliRunner().invoke(app, ["runs", "rm", "--yes", str(run)])
    assert done.exit_code == Exit.LOCKED
    assert f"{run} is in use by host" in done.output
    lock.release()
    assert CliRunner().invoke(app, ["runs", "rm", "--yes", str(run)]).exit_code == 0


@pytest.mark.parametrize("foreign", ["notes.txt", "src"])
def test_a_folder_with_other_files_is_refused(run: Path, foreign: str) -> None:
    (run / foreign).mkdir()
    done = CliRunner().invoke(app, ["runs", "rm", "--yes", str(run)])
    assert done.exit_code == Exit.STORAGE
    assert f"also holds {foreign}, which is not part of a run" in done.output
    assert (run / "run.db").is_file()


def test_a_folder_without_a_run_and_a_link_are_refused(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "project"
    other.mkdir()
    (other / "config.toml").touch()
    link = tmp_path / "link"
    link.symlink_to(run)
    for folder, reason in ((other, "it is not a run"), (link, "is a link"), (tmp_path / "absent", "holds no run")):
        done = CliRunner().invoke(app, ["runs", "rm", "--yes", str(run), str(folder)])
        assert done.exit_code == Exit.STORAGE
        assert reason in done.output
    assert (run / "run.db").is_file()
    assert other.is_dir()
