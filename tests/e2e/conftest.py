"""The undisturbed run that end-to-end tests compare disturbed ones with."""

from pathlib import Path

import pytest

from tests.shared import copied_run


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
    return copied_run(finished[0], tmp_path / "copied")
