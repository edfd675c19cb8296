"""Pools of both kinds of image sandboxes, on a base image that the tests make themselves."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arise.sandbox.containers import ContainerPool
from arise.sandbox.overlay_pool import OverlayPool
from tests.containers import base
from tests.leftovers import nothing_left

KINDS = ("overlay", "podman")


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


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pool_of(kind: str) -> OverlayPool | ContainerPool:
    return OverlayPool() if kind == "overlay" else ContainerPool()


@pytest.fixture(scope="session")
def python_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Dockerfile with Python and pytest."""
    folder = tmp_path_factory.mktemp("python-image")
    (folder / "Dockerfile").write_text(
        f"FROM {base.NAME}\nRUN apt-get update && apt-get install -y --no-install-recommends python3 python3-pytest\n"
        "WORKDIR /app\n"
    )
    (folder / "Dockerfile").chmod(0o644)
    return folder / "Dockerfile"
