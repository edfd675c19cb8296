"""What a person looks for on every page of a real run, what a screen reader finds, and what is asked of the network."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from benchmarks.big_run import Invention
from playwright.sync_api import Browser, Page, expect

from arise.config import Config, TrainConfig
from arise.run.reader import RunReader
from arise.run.store import RunStore
from tests.dashboard.serving import served
from tests.regressing_run import REGRESSED, STUCK, write_regressing_run

SECTIONS = ("", "/pool", "/sampler", "/tasks", "/rollouts", "/judge", "/evaluation", "/health")
SERIOUS = ("serious", "critical")


@contextmanager
def opened(browser: Browser, address: str, **settings: object) -> Iterator[Page]:
    """A page that may ask nothing but the dashboard, log nothing, and open no dialog."""
    context = browser.new_context(**settings)  # type: ignore[arg-type]
    page = context.new_page()
    trouble: list[str] = []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    try:
        yield page
        assert trouble == []
        assert [url for url in asked if not url.startswith(address)] == []
    finally:
        context.close()


def deep_links(run: Path) -> list[str]:
    with RunReader.open(run) as reader:
        pair, row = reader.pairs()[0], reader.rollouts(limit=1)[0]
    return [f"/pool/{pair.rubric.id}", f"/tasks/{row.task_id}", f"/rollouts/{row.id}"]


def test_from_the_first_page_to_the_reason_of_a_draw(browser: Browser, address: str, run: Path) -> None:
    """The way of somebody who has just trained: what is still wrong, which rubric, which attempt, why this task."""
    with opened(browser, address) as page:
        page.goto(address)
        expect(page).to_have_url(f"{address}/runs/embedded")
        expect(page.get_by_role("status")).to_contain_text("finished 4/4")
        expect(page.locator(".headline .big")).to_have_text(re.compile(r"^\d of 2 → \d of 2$"))
        expect(page.get_by_role("heading", name="Still wrong")).to_be_visible()
        expect(page.locator("#still-wrong tbody tr").first).to_contain_text(re.compile(r"\d+\.\d % \(\d+ of \d+\)"))
        page.get_by_role("link", name="Pool", exact=True).click()
        with RunReader.open(run) as reader:
            pairs = reader.pairs()
        lanes = page.locator("#lifecycle .lane-name a")
        expect(lanes).to_have_count(len(pairs))
        weakest = lanes.first.inner_text().split()[0]
        rubric = next(pair.rubric for pair in pairs if pair.rubric.id == weakest)
        lanes.first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(rubric.criteria_text)
        expect(page.get_by_text(rubric.rule_text)).to_be_visible()
        expect(page.locator(".facts dt").first).to_contain_text("passed unguided")
        page.locator("#verdicts a").first.click()
        expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
        expect(page.locator("article.turn").first).to_be_visible()
        page.get_by_role("link", name=re.compile("slot . of iteration")).click()
        why = page.locator("li:target summary.why")
        expect(why).to_be_visible()
        assert re.match("Discovery|Adaptive|Fallback", why.inner_text())


@pytest.mark.parametrize("section", SECTIONS)
def test_charts_hold_something_and_their_tables_open_by_keyboard(browser: Browser, address: str, section: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}/runs/embedded{section}")
        figures = page.locator("figure")
        assert figures.count() > 0
        for figure in figures.all():
            assert figure.locator("svg[aria-label]").count() >= 1
            assert figure.locator("svg").last.bounding_box()
        summary = figures.first.locator("summary")
        summary.focus()
        page.keyboard.press("Enter")
        expect(figures.first.locator("table")).to_be_visible()
        with page.expect_download() as download:
            figures.first.locator("a.csv").click()
        assert download.value.suggested_filename.endswith(".csv")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, address: str, run: Path, scheme: str) -> None:
    with opened(browser, address, color_scheme=scheme) as page:
        for section in (*SECTIONS, *deep_links(run)):
            page.goto(f"{address}/runs/embedded{section}")
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(page).response["violations"]
            serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in SERIOUS]
            assert serious == [], section


def test_everything_but_the_live_part_works_without_javascript(browser: Browser, address: str, run: Path) -> None:
    with opened(browser, address, java_script_enabled=False) as page:
        for section in (*SECTIONS, *deep_links(run)):
            page.goto(f"{address}/runs/embedded{section}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
        page.goto(f"{address}/runs/embedded/sampler")
        page.get_by_role("spinbutton", name="Iteration").fill("2")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("heading", name="Iteration 2")).to_be_visible()


def test_a_commit_shows_without_a_reload(browser: Browser, tmp_path: Path) -> None:
    invention = Invention(Config(train=TrainConfig(iterations=9, tasks_per_iteration=2, group_size=2)), corpus=6)
    store = RunStore.open(tmp_path / "going")
    store.commit(invention.iteration(0))
    with served(tmp_path / "going") as address, opened(browser, address) as page:
        page.goto(f"{address}/runs/going")
        expect(page.locator("#told")).to_have_text("iteration 1")
        store.commit(invention.iteration(1))
        expect(page.locator("#told")).to_have_text("iteration 2")
        page.get_by_role("button", name="Dark or light").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    store.close()


def test_the_exported_file_opens_alone(browser: Browser, run: Path, tmp_path: Path) -> None:
    from arise.report.dashboard.catalogue import Catalogue
    from arise.report.dashboard.serving import write_export

    path = tmp_path / "out.html"
    write_export(Catalogue.of([run]), path)
    with opened(browser, path.as_uri()) as page:
        page.goto(path.as_uri())
        page.get_by_role("link", name="embedded: Pool").click()
        expect(page.locator("section:target")).to_contain_text("Life of every behaviour")
        serious = [v["id"] for v in Axe().run(page).response["violations"] if v["impact"] in SERIOUS]
        assert serious == []


def test_the_crosshair_names_every_series_at_once(browser: Browser, address: str) -> None:
    with opened(browser, address, viewport={"width": 1200, "height": 900}) as page:
        page.goto(f"{address}/runs/embedded")
        chart = page.locator("#groups svg[data-tips]")
        chart.scroll_into_view_if_needed()
        chart.hover()
        tip = page.locator("#tip")
        expect(tip).to_contain_text(re.compile(r"iteration \d"))
        for series in ("all-fail", "mixed", "all-pass"):
            expect(tip).to_contain_text(f"{series}: ")
        expect(chart.locator(".crosshair")).to_have_count(1)
        page.mouse.move(5, 5)
        expect(tip).to_have_count(0)


def test_a_held_out_attempt_is_one_click_from_the_evaluation(browser: Browser, address: str) -> None:
    with opened(browser, address) as page:
        page.goto(f"{address}/runs/embedded/evaluation")
        page.locator("#attempts a.sign.bad").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Held-out attempt")
        expect(page.locator("#instruction pre")).not_to_be_empty()
        expect(page.locator("article.turn").first).to_be_visible()
        expect(page.locator("#verdicts .reason").first).not_to_be_empty()


def test_overview_pool_and_rollout_fit_a_phone(browser: Browser, address: str, run: Path) -> None:
    with opened(browser, address, viewport={"width": 390, "height": 844}) as page:
        for section in ("", "/pool", "/rollouts", *deep_links(run)):
            page.goto(f"{address}/runs/embedded{section}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, section


def test_regressions_and_a_stuck_skill_are_on_the_first_screen_and_on_their_pages(
    browser: Browser, tmp_path: Path
) -> None:
    folder = tmp_path / "regressing"
    write_regressing_run(folder)
    with served(folder) as address, opened(browser, address) as page:
        page.goto(address)
        expect(page.locator(".alarm").filter(has_text="Something got worse")).to_be_visible()
        expect(page.get_by_text("No alarms")).to_have_count(0)
        weakest = page.locator("#still-wrong tbody tr").first
        expect(weakest).to_contain_text(STUCK)
        expect(weakest).to_contain_text("stuck: the last 3 refinements had no effect")
        for name in REGRESSED:
            expect(page.locator("#worse tbody tr").filter(has_text=name)).to_contain_text("beyond noise")
        weakest.get_by_role("link", name=STUCK).click()
        expect(page.get_by_role("heading", name="Its skill is stuck")).to_be_in_viewport()
        page.go_back()
        page.locator("#worse").get_by_role("link", name=REGRESSED[0]).click()
        expect(page.locator("#worse")).to_contain_text(re.compile(r"\d+\.\d % → \d+\.\d %, -\d+\.\d points"))
