"""A real run of the embedded world, served, and Debian's chromium to look at it with."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.dashboard.serving import served
from tests.shared import copied_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for one module: its driver keeps an event loop running, and other modules need one of their own."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        # Without its own sandbox, because tests may run as root in a container; it opens loopback pages only.
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def run(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run with a pool, made by the command people type."""
    return copied_run(whole / "run", tmp_path_factory.mktemp("runs") / "embedded")


@pytest.fixture(scope="session")
def address(run: Path) -> Iterator[str]:
    with served(run) as found:
        yield found
