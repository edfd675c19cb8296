"""The pages of an analysis in chromium: the way to a quoted turn, the keyboard, a phone, a screen reader."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from typer.testing import CliRunner

from arise.cli.app import app
from arise.report.analysis.serving import create_app
from tests.browser.test_pages import SERIOUS, opened
from tests.dashboard.serving import on_socket
from tests.trajectory_files import contrast


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("analysis")
    contrast(folder / "runs.jsonl")
    done = CliRunner().invoke(app, ["analyze", str(folder / "runs.jsonl"), "--out", str(folder / "out")])
    assert done.exit_code == 0, done.output
    with on_socket(create_app(folder / "out")) as address:
        yield address


def test_from_the_worst_habit_to_the_turn_that_shows_it(browser: Browser, analysis: str) -> None:
    with opened(browser, analysis) as page:
        page.goto(analysis)
        expect(page.locator(".headline .big")).to_have_text("50.0 %")
        page.locator("#first h3 a").first.click()
        expect(page.get_by_role("heading", name="Evidence")).to_be_visible()
        page.locator("#evidence .who a").first.click()
        expect(page).to_have_url(re.compile("#turn-"))
        expect(page.locator("article.turn:target mark")).to_be_visible()
        expect(page.locator("article.turn:target .pin a")).to_be_visible()
        page.get_by_role("link", name="Attempts", exact=True).first.click()
        page.get_by_role("combobox", name="Outcome").select_option("failed")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".facts dd").first).to_have_text("25")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_page(
    browser: Browser, analysis: str, scheme: str, width: int
) -> None:
    with opened(browser, analysis, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        page.goto(analysis)
        rubric = page.locator("#first h3 a").first.get_attribute("href")
        turn = page.locator("#first .who a").first.get_attribute("href")
        for address in ("/", "/attempts", rubric, turn):
            page.goto(f"{analysis}{address}")
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(page).response["violations"]
            assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in SERIOUS] == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
