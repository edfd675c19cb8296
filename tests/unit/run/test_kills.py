"""F17 — kill -9 anywhere in the store: at every numbered write point, and 200 times at random."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.stored_runs import content_of, in_child, rolled_twice, write_run

WRITES = {"write", "fsync", "replace", "rename", "execute", "executemany", "executescript", "mkdir", "unlink", "rmdir"}
"""C functions through which anything reaches the disk."""
ITERATIONS = 4


@pytest.fixture(scope="module")
def whole(quick_folder: Path) -> Path:
    """A run that nobody killed."""
    folder = quick_folder / "whole"
    write_run(folder, ITERATIONS)
    return folder


def at_each_write(act: Callable[[int], None]) -> None:
    """Call `act(n)` before the n-th write of this process."""
    count = 0

    def watch(frame: FrameType, event: str, function: Any) -> None:
        nonlocal count
        if event == "c_call" and function.__name__ in WRITES:
            count += 1
            act(count)

    sys.setprofile(watch)


def kill_at(point: int) -> Callable[[int], None]:
    def act(number: int) -> None:
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return act


def count_writes(folder: Path) -> int:
    counted = folder / "count"

    def run() -> None:
        last = 0

        def act(number: int) -> None:
            nonlocal last
            last = number

        at_each_write(act)
        write_run(folder / "run", ITERATIONS)
        sys.setprofile(None)
        counted.write_text(str(last))

    assert in_child(run) == 0
    return int(counted.read_text())


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_write_changes_nothing(whole: Path, quick_folder: Path, stride: int) -> None:
    here = quick_folder / f"stride{stride}"
    here.mkdir()
    points = range(1, count_writes(here) + 1, stride)
    assert len(points) * stride > 200
    expected = content_of(whole)
    for point in points:
        folder = here / f"at{point}"

        def run(folder: Path = folder, point: int = point) -> None:
            at_each_write(kill_at(point))
            write_run(folder, ITERATIONS)

        assert in_child(run) == signal.SIGKILL
        write_run(folder, ITERATIONS)
        assert content_of(folder) == expected, f"killed before write {point}"
        assert rolled_twice(folder) == []


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_nothing(whole: Path, quick_folder: Path, kills: int) -> None:
    moments = random.Random(kills)
    expected = content_of(whole)
    here = quick_folder / f"kills{kills}"
    done, folder = 0, here / "0"
    while done < kills:
        child = os.fork()
        if not child:
            write_run(folder, ITERATIONS)
            os._exit(0)
        time.sleep(moments.uniform(0.001, 0.06))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        done += status == signal.SIGKILL
        if status == 0:
            assert content_of(folder) == expected
            assert rolled_twice(folder) == []
            folder = here / str(done)
    write_run(folder, ITERATIONS)
    assert content_of(folder) == expected
    assert rolled_twice(folder) == []
