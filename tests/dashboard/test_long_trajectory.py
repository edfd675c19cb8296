"""However long an attempt is, a page of it opens quickly and stays small."""

import gc
import time
from pathlib import Path

import psutil
import pytest
from fastapi.testclient import TestClient

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.types import Draw, DrawPath, Group, Observation, Pool, Rollout, StopReason, Task, Trajectory, Turn

OPENS_IN, RISE, PAGE_BYTES = 1.5, 150e6, 1e6


def write_long_run(folder: Path, megabytes: int) -> int:
    """One rollout of that size with a line of 1 MB in its second turn; gives its number of turns."""
    turns = [Turn("$ make", (), (Observation(f"{n} " + f"line {n} <of> output & more\n" * 190),)) for n in range(200)]
    body = tuple(turns[n % 200] for n in range(megabytes * 195))
    body = (body[0], Turn("$ cat one-line", (), (Observation("x<" * 500_000),)), *body[1:])
    rollout = Rollout(Trajectory("k0/long/0", "long", body, StopReason.FINISHED), 1.0, True)
    group = Group(Task("long", "do"), (rollout,), 1)
    store = RunStore.open(folder)
    draws = [Draw("long", DrawPath.UNIFORM, 1.0)]
    store.commit(IterationRecord(0, draws, [group], [None], [], Pool(), None, {"pass_rate": 1.0}, {}, None))
    store.close()
    return len(body)


@pytest.mark.parametrize("megabytes", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_page_of_it_opens_quickly_and_is_small(tmp_path: Path, megabytes: int) -> None:
    turns = write_long_run(tmp_path / "run", megabytes)
    gc.collect()
    client = TestClient(create_app(Catalogue.of([tmp_path / "run"])), base_url="http://127.0.0.1")
    client.get("/runs/run")
    process = psutil.Process()
    before, largest = process.memory_info().rss, 0
    addresses = [f"?turn={n}" for n in (1, 2, turns // 2, turns)] + ["?turn=2&part=0", "?turn=2&part=3"]
    for address in addresses:
        began = time.process_time()
        answer = client.get(f"/runs/run/rollouts/k0/long/0{address}")
        assert answer.status_code == 200
        assert time.process_time() - began < OPENS_IN
        assert len(answer.content) < PAGE_BYTES
        largest = max(largest, process.memory_info().rss - before)
    assert largest < RISE
    assert f'id="turn-{turns}"' in client.get(f"/runs/run/rollouts/k0/long/0?turn={turns}").text


def test_a_long_text_can_be_read_to_its_end(tmp_path: Path) -> None:
    write_long_run(tmp_path / "run", 1)
    client = TestClient(create_app(Catalogue.of([tmp_path / "run"])), base_url="http://127.0.0.1")
    html = client.get("/runs/run/rollouts/k0/long/0?turn=2").text
    assert "4 000 of 1 000 000 characters" in html
    assert 'href="?turn=2&amp;part=0"' in html
    seen = 0
    for part in range(40):
        found = client.get(f"/runs/run/rollouts/k0/long/0?turn=2&part={part}").text
        seen += found.count("x&lt;")
        if "Read on" not in found:
            break
    assert seen == 500_000
