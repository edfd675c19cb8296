"""Health counts everything that was lost: rollouts, attempts of evaluations, and calls to models."""

import json
from contextlib import closing
from pathlib import Path

from fastapi.testclient import TestClient

from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.store import RunStore
from tests.dashboard.test_pages import text_of
from tests.stored_runs import write_run


def health(folder: Path) -> str:
    client = TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")
    return text_of(client.get(f"/runs/{folder.name}/health").text)


def test_lost_attempts_of_an_evaluation_are_counted_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(folder, 2)
    assert "Attempts that infrastructure ended None." in health(folder)
    fault = "policy: denied: the environment variable OPENAI_API_KEY holds no key"
    tail = (None, None, "time_limit", fault, 0, "{}")
    with closing(RunStore.open(folder)) as store:
        store.save_attempts([("gpt", f"task-{n // 3}", n % 3, 2, "data", "", *tail) for n in range(180)])
    events = [{"event": "policy.unanswered"}] * 5 + [{"event": "judge.unanswered"}] * 2 + [{"event": "judge.degraded"}]
    (folder / "calls.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    page = health(folder)
    assert "evaluation attempts lost 180 of 180" in page
    assert "calls to models without a reply 7" in page
    assert fault in page
    assert "Attempts that infrastructure ended None." not in page
