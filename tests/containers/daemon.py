"""A docker daemon of the tests: no bridge, no firewall rules, images kept in the cache, ended with the tests.

The daemon also ends when the tests are killed.
"""

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from arise.sandbox.programs import Program
from tests.containers import base, guarded

NEEDED = ("dockerd", "docker", "containerd")
START_SECONDS = 90.0


def missing() -> list[str]:
    return [name for name in NEEDED if shutil.which(name) is None]


@contextlib.contextmanager
def _own_folder(driver: str) -> Iterator[Path]:
    """Hold a data folder that no other daemon uses: one per concurrent test worker."""
    for number in itertools.count():
        folder = base.HERE / "docker" / f"{driver}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield folder
            return


def _load(images: tuple[str, ...], podman: dict[str, str], docker: dict[str, str]) -> None:
    """Hand images that podman made over to docker, each once."""
    line = ["docker", "load", "--quiet"]
    for name in images:
        there = subprocess.run(["docker", "image", "inspect", name], env=docker, capture_output=True, check=False)
        if there.returncode:
            with subprocess.Popen(["podman", "save", name], env=podman, stdout=subprocess.PIPE) as saved:
                subprocess.run(line, env=docker, stdin=saved.stdout, stdout=subprocess.DEVNULL, check=True)


@contextlib.contextmanager
def docker_daemon(driver: str = "overlay2") -> Iterator[str]:
    """Run a daemon with the base images of the tests and yield the value of DOCKER_HOST."""
    podman = Program("podman").settings()
    names = (f"{base.NAME}:latest", f"{base.PYTHON}:latest")
    with _own_folder(driver) as data:
        folder = tempfile.mkdtemp(prefix="docker-")
        host = f"unix://{folder}/docker.sock"
        line = ["dockerd", "--data-root", str(data), "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
        line += ["--host", host, "--storage-driver", driver, "--bridge=none", "--iptables=false", "--ip6tables=false"]
        guard = [sys.executable, guarded.__file__, str(os.getpid()), folder]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen([*guard, *line], stdout=log, stderr=log, start_new_session=True)
        try:
            docker = {**os.environ, "DOCKER_HOST": host}
            _wait(process, docker, Path(folder, "log"))
            _load(names, podman, docker)
            yield host
        finally:
            process.terminate()
            process.wait(guarded.END_SECONDS + 10)


def _wait(process: "subprocess.Popen[bytes]", environment: dict[str, str], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"dockerd did not start: {log.read_text()[-3000:]}")
        time.sleep(0.2)
