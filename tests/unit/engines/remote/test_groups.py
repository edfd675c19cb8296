"""A trainer group of several processes: who gets which rows, and what one process that fails does to the others."""

import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from arise.engines.remote import trainer
from arise.engines.remote.channel import Packet, send
from arise.engines.remote.trainer import TrainerGroup, TrainerLost, TrainerSpec
from arise.engines.remote.workers.loop import Row

WORKER = """
import os, time
import numpy as np
from arise.engines.remote.workers.loop import serve

RANK = int(os.environ["RANK"])

class Backend:
    def facts(self):
        return {"share": RANK // int(os.environ.get("SHARED_BY", "1"))}
    def score(self, rows, temperature):
        return [np.array([float(row.ids_U.sum()), float(RANK)]) for row in rows if row.generated_U.any()]
    def save(self, folder):
        if folder == "refused":
            raise ValueError("no such folder")
        if RANK == 1 and folder == "broken":
            raise RuntimeError("out of memory")
        if RANK == 1 and folder == "odd":
            raise ValueError("seen by one process alone")
        if folder in ("broken", "odd"):
            time.sleep(600)

serve(lambda options: Backend())
"""


@pytest.fixture
def spec(tmp_path: Path) -> TrainerSpec:
    """How to start two processes that compute nothing; what they are asked to save decides what they do."""
    (tmp_path / "worker.py").write_text(WORKER)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "worker.py"} "$@"\n')
    path.chmod(0o755)
    return TrainerSpec("areal", path, "model", processes=2, start_seconds=60.0)


def row(number: int) -> Row:
    return Row(np.array([number, number]), np.array([False, True]), np.zeros(2), 0.0)


def scored(spec: TrainerSpec, tmp_path: Path) -> list[tuple[list[int], list[float]]]:
    """The rows of each process, and the first token of each that it saw."""
    group = TrainerGroup(spec, tmp_path / "logs").start()
    try:
        found = group.call_with_rows("score", [row(1), row(2), row(3)], temperature=1.0)
        return [(numbers, answer.arrays["logprob"][::2].tolist()) for numbers, answer in found]
    finally:
        group.close()


def test_every_process_has_rows_of_its_own(spec: TrainerSpec, tmp_path: Path) -> None:
    assert scored(spec, tmp_path) == [([0, 2], [2.0, 6.0]), ([1], [4.0])]


def test_processes_that_divide_a_row_get_the_same_rows(
    spec: TrainerSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARED_BY", "2")
    assert scored(spec, tmp_path) == [([0, 1, 2], [2.0, 4.0, 6.0])] * 2


@pytest.mark.parametrize(("asked", "said"), [("broken", "out of memory"), ("odd", "seen by one process alone")])
def test_one_process_that_fails_does_not_leave_the_driver_waiting_for_the_others(
    spec: TrainerSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, said: str
) -> None:
    monkeypatch.setattr(trainer, "REFUSAL_SECONDS", 0.5)
    group = TrainerGroup(spec, tmp_path / "logs").start()
    try:
        with pytest.raises(TrainerLost, match=said):
            group.call("save", folder=asked)
    finally:
        group.close()


def test_what_all_processes_refuse_loses_none_of_them(spec: TrainerSpec, tmp_path: Path) -> None:
    group = TrainerGroup(spec, tmp_path / "logs").start()
    try:
        with pytest.raises(ValueError, match="no such folder"):
            group.call("save", folder="refused")
        assert group.call("save", folder="fine") == {}
    finally:
        group.close()


def test_a_group_is_closed_while_it_starts(spec: TrainerSpec, tmp_path: Path) -> None:
    spec.python.write_text("#!/bin/sh\nexec sleep 300\n")
    group, said = TrainerGroup(spec, tmp_path / "logs"), list[str]()

    def start() -> None:
        try:
            group.start()
        except TrainerLost as lost:
            said.append(str(lost))

    thread = threading.Thread(target=start)
    thread.start()
    while len(group._processes) < 2:
        time.sleep(0.01)
    group.close()
    thread.join(30.0)
    assert not thread.is_alive()
    assert "ended while it started" in said[0]


def test_programs_that_find_the_port_do_not_end_the_start(
    spec: TrainerSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = socket.create_server

    def visited(address: tuple[str, int]) -> socket.socket:
        listener = made(address)
        for text in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\0\0\0\0\x02{]"):
            with socket.create_connection(listener.getsockname()) as stranger:
                stranger.sendall(text)
        with socket.create_connection(listener.getsockname()) as stranger:
            send(stranger, Packet({"secret": "gu\u00e9ssed", "rank": 0, "pid": 1}))
        return listener

    monkeypatch.setattr(socket, "create_server", visited)
    monkeypatch.setattr(trainer, "_free_port", lambda _: 1)
    group = TrainerGroup(spec, tmp_path / "logs").start()
    try:
        assert len(set(group.pids)) == 2
        assert 1 not in group.pids
    finally:
        group.close()
