"""A page hears of every commit, and the run folder is only read while somebody looks."""

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.big_run import Invention

from arise.config import Config, TrainConfig
from arise.run.store import RunStore
from tests.dashboard.serving import served


def next_event(answer: http.client.HTTPResponse) -> int:
    while True:
        line = answer.readline().decode()
        assert line, "the stream ended"
        if line.startswith("data: "):
            return int(json.loads(line.removeprefix("data: "))["committed"])


def test_a_commit_reaches_every_listener(tmp_path: Path) -> None:
    run = tmp_path / "going"
    invention = Invention(Config(train=TrainConfig(tasks_per_iteration=2, group_size=2)), corpus=6)
    store = RunStore.open(run)
    store.commit(invention.iteration(0))
    with served(run) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
        connection.request("GET", "/runs/going/live")
        answer = connection.getresponse()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next_event(answer) == 1
        for k in (1, 2):
            store.commit(invention.iteration(k))
            assert next_event(answer) == k + 1
        connection.close()
    store.close()


def test_pages_answer_while_the_run_writes(tmp_path: Path) -> None:
    run = tmp_path / "going"
    invention = Invention(Config(train=TrainConfig(tasks_per_iteration=2, group_size=2)), corpus=6)
    store = RunStore.open(run)
    with served(run) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=20)
        for k in range(12):
            for section in ("", "/pool", "/sampler", "/health"):
                connection.request("GET", f"/runs/going{section}")
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
            store.commit(invention.iteration(k))
        connection.close()
    store.close()
