"""One undisturbed run for all end-to-end tests, to compare the disturbed ones with."""

from pathlib import Path

import pytest

from tests.e2e.runs import call, settings


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all, so that the warm start is made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def finished(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that nobody interrupted, and what it printed."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    done = call(cache, "train", "--run-dir", str(run), *settings())
    assert done.returncode == 0, done.stderr
    return run, done.stdout
