"""Every page answers, and every number on it is a query on the store."""

import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.reader import RunReader
from arise.run.store import RunStore
from tests.unit.run.test_run_store import record

SECTIONS = ("", "/pool", "/sampler", "/tasks", "/rollouts", "/judge", "/evaluation", "/health")


def query(run: Path, sql: str) -> list[Any]:
    with sqlite3.connect(run / "run.db") as db:
        found = db.execute(sql).fetchall()
    db.close()
    return found


def text_of(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))


def table(client: TestClient, address: str) -> list[dict[str, str]]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_chart_has_a_data_table_and_a_csv(client: TestClient, section: str) -> None:
    html = client.get(f"/runs/first{section}").text
    links = [unescape(link) for link in re.findall(r'class="csv" href="([^"]+)"', html)]
    assert len(links) == html.count("<figure") == html.count("<summary>Data table") > 0
    for link in links:
        assert table(client, link) or "csv=reasons" in link


def test_health_lists_tasks_that_are_set_aside_and_the_overview_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    with closing(RunStore.open(folder)) as store:
        state = {"set_aside": {"x/1": [4, 11, 32], "x2": [1, None, None], "x3": [3, 0, 12]}}
        store.commit(replace(record(12), state=state, metrics={"set_aside": 1.0}))
    client = TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")
    health = text_of(client.get("/runs/broken/health").text)
    assert "task groups lost in a row set aside after tried again from x/1 4 12 33 Faults" in health
    assert "Tasks set aside 1 tasks are not drawn for now" in text_of(client.get("/runs/broken").text)
    assert "Tasks set aside" not in text_of(client_of_nothing_lost(tmp_path).get("/runs/sound/health").text)


def client_of_nothing_lost(tmp_path: Path) -> TestClient:
    with closing(RunStore.open(tmp_path / "sound")) as store:
        store.commit(record(0))
    return TestClient(create_app(Catalogue.of([tmp_path / "sound"])), base_url="http://127.0.0.1")


def test_a_single_run_opens_at_once(client: TestClient) -> None:
    answer = client.get("/", follow_redirects=False)
    assert answer.headers["location"] == "/runs/first"


def test_the_overview_shows_what_the_store_holds(client: TestClient, run: Path) -> None:
    rows = table(client, "/runs/first?csv=pass-rate")
    assert [row["iterations"] for row in rows] == ["1-10", "11-20", "21-30", "31-40"]
    ((won, tried),) = query(
        run, "SELECT SUM(success), COUNT(*) FROM rollouts WHERE k BETWEEN 30 AND 39 AND reward IS NOT NULL"
    )
    ((passes, applied),) = query(
        run, "SELECT SUM(verdict='pass'), SUM(verdict!='not_applicable') FROM verdicts WHERE k BETWEEN 30 AND 39"
    )
    assert float(rows[-1]["tasks passed"]) == pytest.approx(won / tried)
    assert float(rows[-1]["rubrics passed"]) == pytest.approx(passes / applied)
    page = text_of(client.get("/runs/first").text)
    assert f"{100 * won / tried:.1f} % tasks passed, last window" in re.sub(
        r"tasks passed, last window (\S+ %)", r"\1 tasks passed, last window", page
    )


def test_the_pool_shows_every_rubric_with_its_events(client: TestClient, run: Path) -> None:
    html = client.get("/runs/first/pool").text
    rows = {row["rubric"]: row for row in table(client, "/runs/first/pool?csv=lifecycle")}
    for rubric_id, events in query(run, "SELECT rubric_id, COUNT(*) FROM events GROUP BY rubric_id"):
        assert f'href="/runs/first/pool/{rubric_id}"' in html
        assert rubric_id in rows
        assert events
    signs = sum(html.count(f"<title>{word} after iteration") for word in ("born", "skill shown", "skill hidden"))
    ((stored,),) = query(run, "SELECT COUNT(*) FROM events WHERE kind IN ('born', 'activate', 'hide')")
    assert signs == stored
    retired = [r for r in rows.values() if r["status"] == "retired"]
    assert len(retired) == query(run, "SELECT COUNT(*) FROM events WHERE kind='retire'")[0][0]


def test_the_pool_filters_by_capability(client: TestClient, run: Path) -> None:
    shown = {row["capability"] for row in table(client, "/runs/first/pool?capability=Verification&csv=lifecycle")}
    assert shown == {"Verification"}
    assert client.get("/runs/first/pool?capability=Wisdom").status_code == 422


def test_a_rubric_page_shows_its_history(client: TestClient, run: Path) -> None:
    ((rubric_id,),) = query(run, "SELECT rubric_id FROM events WHERE kind='activate' LIMIT 1")
    html = client.get(f"/runs/first/pool/{rubric_id}").text
    page = text_of(html)
    with RunReader.open(run) as reader:
        pair = reader.pair(rubric_id)
    assert pair is not None
    for part in (pair.rubric.criteria_text, pair.rubric.rule_text, pair.skills[0].text, "retires at 90.0 %"):
        assert part in page
    windows = table(client, f"/runs/first/pool/{rubric_id}?csv=windows")
    given = dict(query(run, "SELECT rubric_id, COUNT(*) FROM verdicts WHERE verdict IN ('pass','fail') GROUP BY 1"))
    assert sum(int(row["evaluations"]) for row in windows) == given[rubric_id]
    assert "Where it comes from" in page
    assert 'href="/runs/first/rollouts/k' in html


def test_every_slot_says_why(client: TestClient, run: Path) -> None:
    page = text_of(client.get("/runs/first/sampler?iteration=30").text)
    for (details,) in query(run, "SELECT details FROM draws WHERE k=29"):
        draw = json.loads(details)
        assert draw["task_id"] in page
        if draw["path"] == "adaptive":
            assert f"gave {100 * draw['estimate']:.1f} %, weight {draw['weight']:.2f}" in page
        else:
            assert f"chance {100 * draw['probability']:.1f} %" in page


def test_terminal_and_page_give_the_same_reason(client: TestClient, run: Path) -> None:
    ((k,),) = query(run, "SELECT MAX(k) FROM draws WHERE path='adaptive'")
    command = ["sampler", "why", str(run), str(k + 1)]
    draws = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    said = " ".join(CliRunner().invoke(app, command).output.split())
    page = text_of(client.get(f"/runs/first/sampler?iteration={k + 1}").text)
    assert len(draws) == 4
    for draw in draws:
        assert draw["why"] in said
        assert draw["why"] in page
    assert any(re.search(r"pass record \(\d+\.\d passes and \d+\.\d fails", draw["why"]) for draw in draws)


def test_the_judge_page_charts_latency_and_cache_hits(client: TestClient, run: Path) -> None:
    measured = dict(query(run, "SELECT k, value FROM vitals WHERE name='judge.seconds'"))
    latency = table(client, "/runs/first/judge?csv=latency")
    assert {int(row["iteration"]) - 1: float(row["median seconds"]) for row in latency} == measured
    assert all(float(row["median seconds"]) <= float(row["95th percentile"]) for row in latency)
    recorded = dict(query(run, "SELECT k, value FROM vitals WHERE name='judge.recorded'"))
    cache = table(client, "/runs/first/judge?csv=cache")
    assert {int(row["iteration"]) - 1: float(row["replies recorded"]) for row in cache} == recorded
    assert {float(row["cached share"]) for row in cache} == {6000 / 9000}
    assert {float(row["prompt tokens"]) for row in cache} == {9000.0 * 16}


def test_cost_pages_read_the_sums(client: TestClient, run: Path) -> None:
    cost = table(client, "/runs/first/judge?csv=cost")
    assert [float(row["judge"]) for row in cost] == pytest.approx([0.016 * (k + 1) for k in range(40)])
    assert "$0.64 " in text_of(client.get("/runs/first/judge").text)


def test_the_heat_map_counts_adaptive_draws(client: TestClient, run: Path) -> None:
    rows = table(client, "/runs/first/sampler?csv=stages")
    ((adaptive,),) = query(run, "SELECT COUNT(*) FROM draws WHERE path='adaptive'")
    assert sum(int(row["draws"]) for row in rows) == adaptive > 0
    for stage in ("early", "middle", "late"):
        shares = [float(row["share"]) for row in rows if row["stage"] == stage]
        assert not shares or sum(shares) == pytest.approx(1.0)


def test_tasks_lead_to_their_groups_and_reasons(client: TestClient, run: Path) -> None:
    ((task_id, groups),) = query(
        run, "SELECT task_id, COUNT(*) FROM groups GROUP BY task_id ORDER BY 2 DESC, 1 LIMIT 1"
    )
    assert f'href="/runs/first/tasks/{task_id}"' in client.get("/runs/first/tasks?order=groups").text
    html = client.get(f"/runs/first/tasks/{task_id}").text
    assert html.count('<summary class="why">') == groups
    assert "#slot-" in html


@pytest.mark.parametrize(
    ("outcome", "condition"), [("pass", "success=1"), ("fail", "success=0"), ("fault", "fault!=''")]
)
def test_rollouts_filter_by_outcome(client: TestClient, run: Path, outcome: str, condition: str) -> None:
    html = client.get(f"/runs/first/rollouts?outcome={outcome}").text
    ((stored,),) = query(run, f"SELECT COUNT(*) FROM rollouts WHERE {condition}")  # noqa: S608
    assert len(re.findall(r'<a href="/runs/first/rollouts/', html)) == min(stored, 60)


def test_a_trajectory_shows_turns_verdicts_skills_and_siblings(client: TestClient, run: Path) -> None:
    ((rollout_id,),) = query(
        run, "SELECT rollout_id FROM verdicts WHERE shown=1 AND verdict='pass' ORDER BY rollout_id LIMIT 1"
    )
    html = client.get(f"/runs/first/rollouts/{rollout_id}").text
    page = text_of(html)
    with RunReader.open(run) as reader:
        row, stored = reader.rollout(rollout_id), reader.trajectory(rollout_id)
        assert row is not None
        assert stored is not None
        verdicts, siblings = reader.verdicts_of(rollout_id), reader.siblings(row)
    for turn in stored.turns():
        assert turn.text in page
    assert html.count('<article class="turn"') == row.turns
    assert all(f"/pool/{verdict.rubric_id}" in html for verdict in verdicts)
    assert all(f"/rollouts/{sibling.id}" in html for sibling in siblings)
    assert len(siblings) == 4
    for skill in stored.rollout.trajectory.shown_skills:
        assert f"{skill.rubric_id} revision {skill.revision}" in page
    assert f"{row.generated_tokens} trained on" in page


def test_a_reward_of_0_that_test_sh_did_not_give_has_its_reason_on_the_page(tmp_path: Path) -> None:
    kept = record(0)
    group = kept.groups[0]
    zero = replace(
        group.rollouts[0], reward=0.0, success=False, reason="test.sh hung <b>", verifier_output="last words <i>"
    )
    rollouts = (zero, *group.rollouts[1:])
    with closing(RunStore.open(tmp_path / "run")) as store:
        groups = [replace(group, rollouts=rollouts), *kept.groups[1:]]
        store.commit(replace(kept, groups=groups, metrics={"without_own_reward": 1.0}))
    client = TestClient(create_app(Catalogue.of([tmp_path / "run"])), base_url="http://127.0.0.1")
    page = text_of(client.get(f"/runs/run/rollouts/{zero.trajectory.id}").text)
    assert "by the verifier failed test.sh hung <b>" in page
    assert "What the verifier printed last words <i>" in page
    assert f"The task {group.task.instruction}" in page
    assert "rollouts that test.sh gave no reward 1" in text_of(client.get("/runs/run/health").text)


def test_the_parts_of_an_advantage_add_up(client: TestClient, run: Path) -> None:
    (rollout_id,) = query(run, "SELECT id FROM rollouts WHERE rubric_advantage != 0 LIMIT 1")[0]
    html = client.get(f"/runs/first/rollouts/{rollout_id}").text
    for row in table(client, f"/runs/first/rollouts/{rollout_id}?csv=advantages"):
        attempt = row["rollout"].rpartition("/")[2]
        parts = re.findall(rf"attempt {attempt}: (?:task|rubric) part ([+-][\d.]+)", html)
        assert sum(map(float, parts)) == pytest.approx(float(row["advantage"].lstrip("'")), abs=2e-3)


def test_raw_lines_are_the_stored_turns(client: TestClient, run: Path) -> None:
    (rollout_id,) = query(run, "SELECT id FROM rollouts WHERE turns > 2 LIMIT 1")[0]
    head, *turns = [json.loads(line) for line in client.get(f"/runs/first/raw/{rollout_id}").text.splitlines()]
    assert head["trajectory"]["id"] == rollout_id
    with RunReader.open(run) as reader:
        stored = reader.trajectory(rollout_id)
        assert stored is not None
        assert [turn["text"] for turn in turns] == [turn.text for turn in stored.turns()]


def test_absent_verdicts_are_shown_with_their_reason(client: TestClient, run: Path) -> None:
    rows = table(client, "/runs/first/judge?csv=reasons")
    ((absent,),) = query(run, "SELECT COUNT(*) FROM verdicts WHERE verdict IS NULL")
    assert sum(float(row["format"]) for row in rows) == absent > 0


def test_evaluations_are_shown_side_by_side_with_their_proof(client: TestClient) -> None:
    page = text_of(client.get("/runs/first/evaluation").text)
    assert "before" in page
    assert "after" in page
    assert "0 bytes" in page


def test_runs_are_compared_with_their_settings_first(both: TestClient) -> None:
    html = both.get("/compare?run=first&run=second").text
    assert html.index("train.seed") < html.index("<figure")
    assert {row["run"] for row in table(both, "/compare?run=first&run=second&csv=pass-rate")} == {"first", "second"}
    assert both.get("/compare?" + "&".join(f"run={n}" for n in range(7))).status_code == 422
    by_rollouts = table(both, "/compare?run=first&by=rollouts&csv=pass-rate")
    assert [float(row["rollouts"]) for row in by_rollouts] == [160, 320, 480, 640]


@pytest.mark.parametrize(
    "address",
    [
        "/runs/none",
        "/runs/first/pool/r999",
        "/runs/first/tasks/none",
        "/runs/first/rollouts/none",
        "/runs/first/raw/none",
        "/runs/first/sampler?iteration=999",
        "/runs/first/pool?csv=none",
        "/nowhere",
        "/static/app.py",
        "/compare?run=none",
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert "This cannot be shown" in answer.text
