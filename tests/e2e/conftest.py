"""One undisturbed run for all end-to-end tests, to compare the disturbed ones with."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.runs import call_afresh, settings
from tests.shared import once


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an undisturbed run, what it printed, and the cache with its warm start; made once per session."""

    def make(folder: Path) -> None:
        done = call_afresh(folder / "cache", "train", "--run-dir", str(folder / "run"), *settings())
        assert done.returncode == 0, done.stderr
        (folder / "stdout").write_text(done.stdout, encoding="utf-8")

    return once(tmp_path_factory, "whole", make)


@pytest.fixture(scope="session")
def cache(whole: Path) -> Path:
    """The cache of all end-to-end tests: it holds the warm start."""
    return whole / "cache"


@pytest.fixture(scope="session")
def finished(whole: Path) -> tuple[Path, str]:
    """The undisturbed run and what it printed. Read it only: all workers share it."""
    return whole / "run", (whole / "stdout").read_text(encoding="utf-8")


@pytest.fixture
def copied(finished: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy of the undisturbed run, to write to."""
    return shutil.copytree(finished[0], tmp_path / "copied")
