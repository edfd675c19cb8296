"""A run in which a skill is stuck and two behaviours regress: Overview, rubric page and summary say so."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from arise.observe.summary import Summary
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.facts.story import RunFacts, run_facts
from arise.run.reader import RunReader
from tests.dashboard.test_pages import text_of
from tests.dashboard.test_ten_seconds import raw_counts, section
from tests.regressing_run import NO_WORDING, REGRESSED, REWRITTEN, STUCK, write_regressing_run

STUCK_WORDS = f"rewritten {REWRITTEN} times, no other wording found, stuck: the last 3 refinements had no effect"


@pytest.fixture(scope="module")
def regressing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "regressing"
    write_regressing_run(folder)
    return folder


@pytest.fixture(scope="module")
def pages(regressing: Path) -> TestClient:
    return TestClient(create_app(Catalogue.of([regressing])), base_url="http://127.0.0.1")


@pytest.fixture(scope="module")
def facts(regressing: Path) -> RunFacts:
    with RunReader.open(regressing) as run:
        return run_facts(run)


@pytest.fixture(scope="module")
def fell(regressing: Path, facts: RunFacts) -> dict[str, str]:
    """The two behaviours that regressed: id to `78.1 % → 20.6 %`, counted in the raw attempts."""
    before, after = (raw_counts(regressing, label) for label in ("before", "after"))
    texts = {b.rubric.id: b.rubric.criteria_text for b in facts.behaviours}
    rates = {name: [100 * c[texts[name]][0] / c[texts[name]][1] for c in (before, after)] for name in REGRESSED}
    return {name: f"{first:.1f} % → {last:.1f} %" for name, (first, last) in rates.items()}


def test_the_overview_names_the_stuck_skill_and_both_regressions(pages: TestClient, fell: dict[str, str]) -> None:
    page = pages.get("/runs/regressing").text
    wrong, worse = section(page, "still-wrong"), section(page, "worse")
    assert STUCK_WORDS in wrong
    for change in fell.values():
        assert change in worse
    text = text_of(page)
    assert "The last 3 refinements of 1 skill had no effect." in text
    assert re.search(r"\d+ unguided rates fell, [2-9]\d* beyond noise", text)
    assert "No alarms." not in page


def test_the_pages_of_the_rubrics_say_what_is_wrong(pages: TestClient, fell: dict[str, str]) -> None:
    stuck = pages.get(f"/runs/regressing/pool/{STUCK}").text
    assert "Its last 3 refinements did not raise the rate" in section(stuck, "stuck")
    assert f"skill not rewritten after iteration {2 * (REWRITTEN + 3)}" in text_of(stuck)
    assert NO_WORDING in text_of(stuck)
    assert section(stuck, "worse") == ""
    for name, change in fell.items():
        told = section(pages.get(f"/runs/regressing/pool/{name}").text, "worse")
        assert re.search(rf"On held-out tasks: {change}, -\d+\.\d points \(95 % .*\), beyond noise\.", told)


def test_the_summary_has_the_same_facts_and_counts_new_texts_only(
    regressing: Path, facts: RunFacts, fell: dict[str, str]
) -> None:
    with closing(sqlite3.connect(regressing / "run.db")) as db:
        ((refined,),) = db.execute("SELECT COUNT(*) FROM events WHERE kind='refine'")
        ((texts, first),) = db.execute("SELECT COUNT(*), SUM(revision = 0) FROM skills")
    before, after = facts.held_out.before, facts.held_out.now
    assert before
    assert after
    summary = Summary("runs/x", facts, before, after, {"refine": refined}, 3, {}, [0.0, 0.0], [], 60.0)
    told = summary.as_text()
    assert refined > texts - first
    assert f", {texts - first} rewritten, 1 stuck" in told
    assert summary.as_json()["rewritten"] == texts - first
    assert re.search(rf"{STUCK} .* \[skill shown, {STUCK_WORDS}", told)
    for name, change in fell.items():
        assert re.search(rf"{change}  -\d+\.\d points .*, beyond noise, n = \d+ and \d+  {name} ", told)
    assert "no alarms" not in told
