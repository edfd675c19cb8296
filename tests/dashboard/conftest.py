"""One invented run for all tests of the dashboard, written through the real store."""

from pathlib import Path

import pytest
from benchmarks.big_run import write_run
from fastapi.testclient import TestClient

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    write_run(folder, iterations=40, tasks=4, group=4)
    return folder


@pytest.fixture(scope="session")
def second_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "second"
    write_run(folder, iterations=20, tasks=4, group=4, seed=1)
    return folder


@pytest.fixture
def client(run: Path) -> TestClient:
    return TestClient(create_app(Catalogue.of([run])), base_url="http://127.0.0.1")


@pytest.fixture
def both(run: Path, second_run: Path) -> TestClient:
    return TestClient(create_app(Catalogue.of([run, second_run])), base_url="http://127.0.0.1")
