"""Whatever a task, an agent or a judge writes is shown, never obeyed."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from benchmarks.big_run import Invention
from fastapi.testclient import TestClient

from arise.config import Config, TrainConfig
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.export import export
from arise.report.dashboard.rendering import with_code
from arise.run.store import RunStore
from arise.text.escape import visible
from arise.types import Observation, Task, Turn

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x00\x1b[31m\u202e\u200b\ud800{{7*7}}"


class Elements(HTMLParser):
    """Every element and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every free text is an attack."""
    folder = tmp_path_factory.mktemp("runs") / "hostile"
    invention = Invention(Config(train=TrainConfig(tasks_per_iteration=2, group_size=2)), corpus=4, fault_rate=0.0)
    store = RunStore.open(folder)
    for k in range(11):
        record = invention.iteration(k)
        groups = []
        for group in record.groups:
            turn = Turn(HOSTILE, (), (Observation(HOSTILE, error=True),), HOSTILE)
            rollouts = tuple(
                replace(r, trajectory=replace(r.trajectory, turns=(turn,), system_prompt=HOSTILE), fault="")
                for r in group.rollouts
            )
            groups.append(replace(group, task=Task(group.task.id, HOSTILE, (HOSTILE,), HOSTILE), rollouts=rollouts))
        store.commit(replace(record, groups=groups, update=None if k < 9 else record.update))
    rows = [("evil" + HOSTILE[:60], HOSTILE[:60], 0, 1, HOSTILE[:30], HOSTILE[:30], 1, 1.0, "finished", "", 0, "{}")]
    store.save_attempts(rows)
    store.close()
    return folder


def pages(client: TestClient) -> list[str]:
    found: dict[str, str] = {}
    queue = ["/runs/hostile"]
    while queue and len(found) < 60:
        address = queue.pop(0)
        if address in found:
            continue
        answer = client.get(address)
        if "/raw/" in address:
            assert answer.headers["content-type"] == "application/jsonl"
            assert answer.headers["content-disposition"].startswith("attachment")
            continue
        found[address] = answer.text
        queue += re.findall(r'href="(/runs/hostile[^"#?]*)"', found[address])
    return list(found.values())


def test_no_page_runs_what_is_written_in_a_run(hostile: Path) -> None:
    client = TestClient(create_app(Catalogue.of([hostile])), base_url="http://127.0.0.1")
    everything = [*pages(client), export(Catalogue.of([hostile]))]
    assert len(everything) > 15
    for html in everything:
        seen = Elements()
        seen.feed(html)
        assert "img" not in seen.tags
        assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
        assert "alert(1)</script>" not in html
        assert "\x1b" not in html
        assert "\u202e" not in html
        assert "{{7*7}}" in html or HOSTILE[:10] not in html
    assert sum(r"\x1b" in html for html in everything) > 3


def test_invisible_characters_are_escaped() -> None:
    assert visible("a\x00b\x1b\u202e\ud800\n\tc") == r"a\x00b\x1b\u202e\ud800" + "\n\tc"


def test_a_message_with_backticks_is_escaped_and_shows_code() -> None:
    assert with_code("run `arise judge check` & <b>") == "run <code>arise judge check</code> &amp; &lt;b&gt;"
    assert with_code("an odd ` stays <i>") == "an odd ` stays &lt;i&gt;"
