"""Pictures of the main pages for the documentation: python benchmarks/screenshots.py RUN [docs/screenshots]."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.dashboard.serving import served

from arise.run.reader import RunReader

WIDTH, HEIGHT, TALL = 1240, 760, 1080
LARGEST = 200_000


def pages(run: Path) -> dict[str, tuple[str, str]]:
    """File name to address and colour scheme."""
    with RunReader.open(run) as reader:
        told = max(reader.pairs(), key=lambda pair: len(pair.events)).rubric.id
        mixed = [group for group in reader.groups() if group.outcome == "mixed"][-1]
        attempt = next(r for r in reader.rollouts(k=mixed.k, task_id=mixed.task_id) if r.success)
    root = f"/runs/{run.name}"
    return {
        "overview": (root, "light"),
        "pool": (f"{root}/pool", "light"),
        "pool-dark": (f"{root}/pool", "dark"),
        "rubric": (f"{root}/pool/{told}", "light"),
        "why": (f"{root}/sampler?iteration=16", "light"),
        "sampler": (f"{root}/sampler#stages", "light"),
        "trajectory": (f"{root}/rollouts/{attempt.id}", "light"),
        "evaluation": (f"{root}/evaluation", "light"),
    }


def take(run: Path, folder: Path) -> None:
    """One picture a page."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed: apt-get install chromium")
    with served(run) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (place, scheme) in pages(run).items():
            size = {"width": WIDTH, "height": TALL if name.startswith("pool") else HEIGHT}
            page = browser.new_page(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(address + place)
            path = folder / f"{name}.png"
            page.screenshot(path=path)
            page.close()
            assert path.stat().st_size < LARGEST, f"{path} has {path.stat().st_size} bytes"
            print(f"{path}  {path.stat().st_size / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]).absolute(), Path(sys.argv[2] if len(sys.argv) > 2 else "docs/screenshots"))
