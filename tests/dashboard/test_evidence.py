"""Evidence is one click away: held-out attempts as trajectories, reasons of verdicts, filters that find a rollout."""

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from benchmarks.big_run import held_out
from fastapi.testclient import TestClient

from arise.evaluation.attempts import write_raw
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.facts.behaviours import behaviours, weakness
from arise.run.reader import RunReader
from arise.run.store import RunStore
from arise.text.numbers import FEW
from arise.types import Attempt, Diagnostic, DiagnosticItem, DiagnosticKind, Judgment, Rollout, StopReason, Verdict
from tests.builders import a_rollout
from tests.dashboard.test_pages import query, table, text_of

ITEM = DiagnosticItem(
    DiagnosticKind.FAILURE_GAP,
    "planning",
    "When inputs are many, the agent failed to list them, observable via no listing: nothing listed them.",
    ("no listing",),
)


def attempt_of(row: tuple[object, ...], rubric: str) -> Attempt:
    label, task_id, number, k, domain, task_type, success, reward = row[:8]
    rollout = a_rollout(0, {})
    judgment = Judgment(
        1,
        "test",
        {rubric: Verdict.FAIL},
        diagnostic=Diagnostic(False, "", (ITEM,)),
        reasons={rubric: "turn 1 wrote <out>, nothing read it back"},
    )
    return Attempt(
        str(label), str(task_id), int(str(number)), int(str(k)), str(domain), str(task_type), bool(success),
        float(str(reward)), StopReason.FINISHED, "", 0, judgment.verdicts,
        rollout=Rollout(rollout.trajectory, float(str(reward)), bool(success), judgment, verifier_output="1 of 2"),
        instruction="Convert the lengths <b>",
    )  # fmt: skip


@pytest.fixture(scope="module")
def told(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose last evaluation has its transcripts on file."""
    folder = tmp_path_factory.mktemp("runs") / "told"
    shutil.copytree(run, folder)
    with closing(RunStore.open(folder)) as store:
        rubric = store.rubrics()[0].id
        rows = held_out("after", store.committed(), 0.4, np.random.default_rng(3))
        rows = [(*row[:-1], f'{{"{rubric}": "fail"}}') for row in rows]
        store.save_attempts(rows)
    write_raw(folder, "after", [attempt_of(row, rubric) for row in rows])
    return folder


@pytest.fixture
def pages(told: Path) -> TestClient:
    return TestClient(create_app(Catalogue.of([told])), base_url="http://127.0.0.1")


def test_every_held_out_attempt_opens_as_a_trajectory(pages: TestClient, told: Path) -> None:
    html = pages.get("/runs/told/evaluation?evaluation=after").text
    links = re.findall(r'href="(/runs/told/rollouts/eval/[^"]+)" aria-label="attempt (\d+) (\w+)"', html)
    stored = query(told, "SELECT task_id, attempt, success FROM attempts WHERE label='after'")
    words = {0: "failed", 1: "passed"}
    expected = {(f"/runs/told/rollouts/eval/after/{task}/{n}", str(n + 1), words[won]) for task, n, won in stored}
    assert set(links) == expected
    page = text_of(pages.get(links[0][0]).text)
    for words_on_it in (
        "The task Convert the lengths <b>",
        "What the verifier printed 1 of 2",
        "turn 1 wrote <out>, nothing read it back",
        "When inputs are many, the agent failed to list them. no listing: nothing listed them.",
        "held-out attempts never see one",
    ):
        assert words_on_it in page
    assert "advantage" not in page


def test_tasks_that_fail_most_come_first_and_a_task_type_can_be_chosen(pages: TestClient, told: Path) -> None:
    html = pages.get("/runs/told/evaluation?evaluation=after").text
    order = [text_of(row).split()[0] for row in re.findall(r"<tr><td>(.*?)</td>", html.partition('id="attempts"')[2])]
    wanted = "SELECT task_id FROM attempts WHERE label='after' GROUP BY task_id ORDER BY AVG(success), task_id"
    rates = [task_id.rpartition("/")[2] for (task_id,) in query(told, wanted)]
    assert order == rates
    kind = query(told, "SELECT MIN(task_type) FROM attempts WHERE label='after'")[0][0]
    chosen = pages.get(f"/runs/told/evaluation?evaluation=after&task_type={kind}").text.partition('id="attempts"')[2]
    tasks = query(told, f"SELECT COUNT(DISTINCT task_id) FROM attempts WHERE label='after' AND task_type='{kind}'")  # noqa: S608
    assert chosen.count("<tr><td>") == tasks[0][0] > 0


def test_a_rubric_names_the_held_out_attempts_that_failed_it(pages: TestClient, told: Path) -> None:
    with RunReader.open(told) as reader:
        rubric = reader.pairs()[0].rubric.id
    html = pages.get(f"/runs/told/pool/{rubric}").text
    found = text_of(html)
    assert "Held-out attempts that failed it:" in found
    assert html.count("/rollouts/eval/after/") == 8
    (fact,) = re.findall(r"<dt>passed unguided, held out</dt><dd>([^<]*)</dd>", html)
    assert fact == "0.0 %"


def test_unknown_attempts_are_not_found(pages: TestClient) -> None:
    for name in ("eval/after/nothing/0", "eval/../../config/0", "eval/none/x/0", "eval/after", "eval/before/x/-1"):
        assert pages.get(f"/runs/told/rollouts/{name}").status_code == 404


def test_the_lanes_are_sorted_by_weakness_and_identical_criteria_share_one(told: Path, pages: TestClient) -> None:
    with RunReader.open(told) as reader:
        found = sorted(behaviours(reader), key=lambda b: (not b.unguided.evaluations, weakness(b)))
    html = pages.get("/runs/told/pool").text
    lanes = re.findall(r'class="lane-name">.*?<small>(r\d+)</small>', html)
    assert lanes == [behaviour.rubric.id for behaviour in found][: len(lanes)]
    assert len(lanes) == min(80, len(found))
    assert html.index('id="lifecycle"') < html.index('id="timeline"')


def test_a_rate_of_few_verdicts_never_leads_and_is_never_drawn(told: Path, pages: TestClient) -> None:
    with RunReader.open(told) as reader:
        ranked = sorted((b for b in behaviours(reader) if b.unguided.evaluations), key=weakness)
        ids = [pair.rubric.id for pair in reader.pairs()]
    few = [b.unguided.evaluations < FEW for b in ranked]
    assert few == sorted(few)
    for rubric in ids[:10]:
        windows = table(pages, f"/runs/told/pool/{rubric}?csv=windows") if _has_chart(pages, rubric) else []
        enough = sum(int(w[f"{kind} evaluations"]) >= FEW for w in windows for kind in ("unguided", "guided"))
        html = pages.get(f"/runs/told/pool/{rubric}").text
        assert len(re.findall(r"<title>(?:unguided|with its skill): ", html)) == enough


def _has_chart(pages: TestClient, rubric: str) -> bool:
    return 'id="windows"' in pages.get(f"/runs/told/pool/{rubric}").text


def test_the_sampler_leads_with_heat_maps_and_gives_each_reason_in_one_line(pages: TestClient) -> None:
    html = pages.get("/runs/told/sampler").text
    assert html.index('id="stages"') < html.index('id="belief"') < html.index('id="slots"')
    lines = re.findall(r'<summary class="why">([^<]+)</summary>', html)
    assert len(lines) == 4
    assert all(len(line) < 110 and line.count(". ") == 0 for line in lines)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("stop={stop}", "stop='{stop}'"),
        ("rubric={rubric}&verdict=fail", "EXISTS (SELECT 1 FROM verdicts v WHERE v.rollout_id=id AND v.rubric_id="
         "'{rubric}' AND verdict='fail')"),
        ("rubric={rubric}", "EXISTS (SELECT 1 FROM verdicts v WHERE v.rollout_id=id AND v.rubric_id='{rubric}' "
         "AND verdict IN ('pass', 'fail'))"),
        ("order=turns&iteration=", "1"),
    ],
)  # fmt: skip
def test_rollouts_are_found_by_stop_reason_and_by_rubric(
    pages: TestClient, told: Path, asked: str, wanted: str
) -> None:
    ((rubric, stop),) = query(told, "SELECT MIN(rubric_id), (SELECT MIN(stop) FROM rollouts) FROM verdicts")
    names = {"rubric": rubric, "stop": stop}
    html = pages.get(f"/runs/told/rollouts?{asked.format(**names)}").text
    ((stored,),) = query(told, f"SELECT COUNT(*) FROM rollouts WHERE {wanted.format(**names)}")  # noqa: S608
    assert len(re.findall(r'<a href="/runs/told/rollouts/', html)) == min(stored, 60) > 0
    if "order" in asked:
        turns = [int(n) for n in re.findall(r'aria-hidden="true">turns</span>(\d+)<', html)]
        assert turns == sorted(turns, reverse=True)
        assert turns[0] == query(told, "SELECT MAX(turns) FROM rollouts")[0][0]


def test_no_path_is_doubled_in_the_list_of_rollouts(pages: TestClient, told: Path) -> None:
    listed = pages.get("/runs/told/rollouts").text.partition("<figure")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", listed, re.DOTALL)[1:]
    assert len(rows) == 60
    with closing(sqlite3.connect(told / "run.db")) as db:
        tasks = {task for (task,) in db.execute("SELECT DISTINCT task_id FROM rollouts")}
    for row in rows:
        (task,) = [name for name in tasks if f'/tasks/{name}"' in row]
        assert text_of(row).count(task.rpartition("/")[2]) == 1


def test_compare_answers_first_what_is_better_what_is_worse_and_whether_it_is_noise(told: Path, run: Path) -> None:
    both = TestClient(create_app(Catalogue.of([run, told])), base_url="http://127.0.0.1")
    html = both.get("/compare?run=first&run=told").text
    answer = text_of(html.partition('id="answer-1"')[2].partition("</section>")[0])
    rates = [
        query(folder, "SELECT 100.0 * AVG(success) FROM attempts WHERE label='after'")[0][0] for folder in (run, told)
    ]
    assert f"{rates[0]:.1f} % → {rates[1]:.1f} %" in answer
    assert re.search(r"points \(95 % [+-][\d.]+ to [+-][\d.]+\), (within|beyond) noise", answer)
    assert html.index('id="answer-1"') < html.index("What differs") < html.index('id="pass-rate"')
    for kind, worse in (("Worse in told", True), ("Better in told", False)):
        part = answer.partition(kind)[2].partition("Better in told" if worse else "equal in both")[0]
        by_type = "SELECT task_type, AVG(success) FROM attempts WHERE label='after' GROUP BY task_type"
        first, second = (dict(query(folder, by_type)) for folder in (run, told))
        moved = {name for name in first if (second[name] < first[name] if worse else second[name] > first[name])}
        assert {name for name in first if f"task type {name} " in part} == moved
    swapped = text_of(both.get("/compare?run=told&run=first").text)
    assert f"{rates[1]:.1f} % → {rates[0]:.1f} %" in swapped


def test_charts_carry_their_numbers_for_the_crosshair(pages: TestClient) -> None:
    import html as entities
    import json

    page = pages.get("/runs/told").text
    rows = table(pages, "/runs/told?csv=groups")
    found = [json.loads(entities.unescape(text)) for text in re.findall(r'data-tips="([^"]*)"', page)]
    groups = next(tips for tips in found if tips["series"][0][0] == "all-fail")
    assert dict(groups["series"])["mixed"] == [float(row["mixed"]) for row in rows]
    assert groups["at"] == [f"iteration {row['iteration']}" for row in rows]
    assert pages.get("/static/charts.js").status_code == 200
