"""Processes of other environments: ended with everything they started, also when the driver is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from arise.engines.remote.processes import Process
from arise.engines.remote.trainer import TrainerGroup, TrainerLost, TrainerSpec

DAEMON = "setsid sh -c 'echo $$ > {0}; exec sleep 300' & echo $$ > {1}; "
STUBBORN = DAEMON + "trap '' TERM; while :; do sleep 0.1; done"


def pids_in(*files: Path) -> list[int]:
    end = time.monotonic() + 30.0
    while not all(file.exists() and file.read_text().strip() for file in files):
        assert time.monotonic() < end
        time.sleep(0.02)
    return [int(file.read_text()) for file in files]


def assert_gone(pids: list[int]) -> None:
    end = time.monotonic() + 30.0
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_process_ends_with_its_daemons_and_against_its_will(tmp_path: Path) -> None:
    files = tmp_path / "daemon", tmp_path / "own"
    process = Process(["sh", "-c", STUBBORN.format(*files)], tmp_path / "log", {})
    pids = pids_in(*files)
    assert process.running
    process.end()
    assert not process.running
    assert_gone(pids)


def test_no_process_is_left_when_the_driver_is_killed(tmp_path: Path) -> None:
    files = tmp_path / "daemon", tmp_path / "own"
    command = (DAEMON + "sleep 300").format(*files)
    program = (
        "import time; from pathlib import Path; from arise.engines.remote.processes import Process\n"
        f"Process(['sh', '-c', {command!r}], Path({str(tmp_path / 'log')!r}), {{}}); time.sleep(300)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    driver = subprocess.Popen([sys.executable, "-c", program], env=environment)
    pids = pids_in(*files)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert_gone(pids)


LITTER = """
import mmap, os, pathlib, signal, sys, tempfile, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = open(sys.argv[1], "wb+")
file.truncate(4096)
shared = mmap.mmap(file.fileno(), 4096)
pathlib.Path(sys.argv[2]).write_text(tempfile.mkdtemp())
time.sleep(300)
"""


def test_no_temporary_file_and_no_shared_memory_is_left_of_what_is_killed(tmp_path: Path) -> None:
    shared, noted = Path("/dev/shm") / f"psm_{tmp_path.parent.name}_{os.getpid()}", tmp_path / "noted"
    process = Process([sys.executable, "-c", LITTER, str(shared), str(noted)], tmp_path / "log", {})
    end = time.monotonic() + 30.0
    while not (noted.exists() and noted.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    made = Path(noted.read_text())
    assert made.is_dir()
    assert shared.exists()
    process.end()
    assert not made.exists()
    assert not made.parent.exists(), "a folder of its own"
    assert not shared.exists()


def test_a_trainer_whose_library_is_missing_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    spec = TrainerSpec("areal", Path(sys.executable), "model", processes=2)
    with pytest.raises(TrainerLost, match=r"(?s)the areal trainer ended while it started.*No module named 'areal'"):
        TrainerGroup(spec, tmp_path).start()
    assert [child for child in psutil.Process().children(recursive=True) if "boot.py" in child.cmdline()] == []
