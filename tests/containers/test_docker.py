"""The docker engine, on a daemon that the tests start; the slow tests run all tests of images on it."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from arise.rollouts.oracle import TrialPools, run_null, run_oracle
from arise.rollouts.verifier import Verifier
from arise.sandbox.choose import image_kind
from arise.sandbox.containers import ContainerPool
from arise.sandbox.layout import SandboxUnavailable
from arise.sandbox.overlay_pool import OverlayPool
from arise.sandbox.programs import Program, find_program, require_program
from arise.tasks import read_task
from arise.types import TaskSpec
from tests.containers import daemon, guarded
from tests.containers.tasks import write
from tests.containers.test_lifecycle import check_killed, many
from tests.leftovers import processes_with

QUICK = ("user", "network-public", "network-list", "steps")


def earned(pool: OverlayPool | ContainerPool, name: str, folder: Path) -> tuple[float | None, float | None]:
    """Return what the solution and doing nothing earn."""
    task = read_task(write(name, folder))
    assert isinstance(task, TaskSpec), task

    async def body() -> tuple[float | None, float | None]:
        async with pool:
            pools = TrialPools(pool, Verifier(pool))
            return (await run_oracle(task, pools)).reward, (await run_null(task, pools)).reward

    return asyncio.run(body())


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.usefixtures("docker")
def test_tasks_earn_what_they_should(name: str, tmp_path: Path) -> None:
    assert earned(ContainerPool(Program("docker")), name, tmp_path) == (1.0, 0.0)


@pytest.mark.usefixtures("docker")
def test_images_that_docker_built_run_on_the_fast_path(tmp_path: Path) -> None:
    assert earned(OverlayPool(Program("docker")), "agent-user", tmp_path) == (1.0, 0.0)


@pytest.mark.usefixtures("docker")
def test_attempts_leave_nothing(tmp_path: Path) -> None:
    many("docker", 4, tmp_path)


@pytest.mark.usefixtures("docker")
def test_a_killed_run_leaves_nothing_once_the_next_starts(tmp_path: Path) -> None:
    check_killed("docker", tmp_path)


DAEMON = """
import time
from tests.containers.daemon import docker_daemon
with docker_daemon() as host:
    print(host, flush=True)
    time.sleep(1000)
"""


def test_the_daemon_of_killed_tests_ends() -> None:
    if daemon.missing():
        pytest.skip("dockerd is missing: run `make containers` as root")
    with subprocess.Popen([sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        folder = Path(tests.stdout.readline().strip().removeprefix("unix://")).parent
        assert processes_with(f"{folder}/pid")
        tests.kill()
    deadline = time.monotonic() + guarded.END_SECONDS + 30
    while (processes_with(f"{folder}/") or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_with(f"{folder}/") == []
    assert not folder.exists()


class Reserved(Program):
    """An engine that does not tell where it keeps files, as docker's containerd store."""

    async def inspect(self, kind: Literal["image", "container"], name: str) -> dict[str, Any] | None:
        found = await super().inspect(kind, name)
        return found and {key: value for key, value in found.items() if key != "GraphDriver"}


def test_an_engine_that_keeps_its_layers_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    assert earned(ContainerPool(Reserved("podman")), "verifier-user", tmp_path) == (1.0, 0.0)
    assert len(list((tmp_path / "cache" / "images").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_store_without_layers_runs_on_the_fast_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver vfs keeps neither images nor containers as layers, as docker's containerd store keeps no images so."""
    if daemon.missing():
        pytest.skip("dockerd is missing: run `make containers` as root")
    with daemon.docker_daemon("vfs") as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        assert earned(OverlayPool(Program("docker")), "user", tmp_path) == (1.0, 0.0)
        with pytest.raises(SandboxUnavailable, match=r"'vfs', which has no layers.*sandbox.kind = \"overlay\""):
            earned(ContainerPool(Program("docker")), "env", tmp_path)


@pytest.mark.parametrize(
    ("host", "said", "remedy"),
    [
        ("unix:///nowhere/docker.sock", "there is no socket /nowhere/docker.sock", "systemctl start docker"),
        ("tcp://10.1.2.3:2376", r"is on another machine \(tcp://10.1.2.3:2376\)", "unset DOCKER_HOST"),
    ],
)
def test_a_daemon_that_cannot_be_used_is_named(
    host: str, said: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", host)
    assert find_program("docker") is None
    with pytest.raises(SandboxUnavailable, match=f"{said}.*{remedy}"):
        require_program("docker")
    assert image_kind("docker")[0] is None
