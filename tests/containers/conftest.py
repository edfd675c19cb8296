"""Pools of both kinds of image sandboxes, on a base image that the tests make themselves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arise.sandbox.containers import ContainerPool
from arise.sandbox.overlay_pool import OverlayPool
from arise.sandbox.programs import Program
from tests.containers import base, daemon
from tests.leftovers import nothing_left

KINDS = ("overlay", "podman")
EVERY_KIND = (*KINDS, pytest.param("docker", marks=pytest.mark.slow))
"""`make test` runs a few tasks on docker (test_docker.py), the slow tests all of them."""


@pytest.fixture(scope="session", autouse=True)
def _engine() -> Iterator[None]:
    """The engine with a store of its own; without it the tests are skipped, each with the reason."""
    if missing := base.missing():
        pytest.skip(f"containers need {', '.join(missing)}: run `make containers` as root")
    before = {name: os.environ.get(name) for name in base.environment()}
    os.environ.update(base.environment())
    base.base_image()
    yield
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="session")
def docker() -> Iterator[None]:
    """A running daemon, found by its DOCKER_HOST."""
    if missing := daemon.missing():
        pytest.skip(f"docker needs {', '.join(missing)}: run `make containers` as root")
    base.python_image()
    with daemon.docker_daemon() as host, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        yield


@pytest.fixture(params=EVERY_KIND)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        request.getfixturevalue("docker")
    return str(request.param)


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    if "kind" in request.fixturenames:
        request.getfixturevalue("kind")  # the daemon is no leftover of the first test that needs it
    with nothing_left():
        yield


def pool_of(kind: str) -> OverlayPool | ContainerPool:
    return OverlayPool() if kind == "overlay" else ContainerPool(Program(kind))


@pytest.fixture(scope="session")
def python_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Dockerfile with Python and pytest."""
    folder = tmp_path_factory.mktemp("python-image")
    (folder / "Dockerfile").write_text(f"FROM {base.python_image()}\nWORKDIR /app\n")
    (folder / "Dockerfile").chmod(0o644)
    return folder / "Dockerfile"
