"""Tests that need the environments of `arise engines install`; `make test-engines` sets ARISE_ENGINES and runs them."""

import os
from collections.abc import Iterator

import pytest

from tests.engines.bench import Bench, the_bench

LIBRARIES = os.environ.get("ARISE_ENGINES", "").split()
collect_ignore_glob = [] if LIBRARIES else ["test_*.py"]


@pytest.fixture(scope="session", params=LIBRARIES)  # so that all tests of a trainer run together
def library(request: pytest.FixtureRequest) -> str:
    """The trainer under test."""
    return str(request.param)


@pytest.fixture
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The server and the trainers that tests share; what a test made is handed back."""
    shared = the_bench(tmp_path_factory)
    yield shared
    shared.hand_back()


def pytest_sessionfinish() -> None:
    """End the shared processes."""
    the_bench.close()
