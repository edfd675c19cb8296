"""Pictures of the pages: python -m benchmarks.screenshots RUN [FOLDER] [--all].

Without --all the pictures of the documentation; with it every page in light, dark and at the width of a phone.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from tests.dashboard.serving import served

from arise.run.reader import RunReader

WIDTH, HEIGHT, TALL = 1240, 760, 940
PHONE = {"width": 390, "height": 844}
LARGEST = 200_000
TALL_PAGES = ("pool", "sampler", "compare")
DOCUMENTED = {
    "light": ("overview", "pool", "rubric", "sampler", "why", "trajectory", "evaluation", "attempt"),
    "dark": ("pool",),
    "phone": ("overview", "pool"),
}


def pages(run: Path) -> dict[str, str]:
    """Every page by name: its address."""
    with RunReader.open(run) as reader:
        told = max(reader.pairs(), key=lambda pair: len(pair.events)).rubric.id
        mixed = [group for group in reader.groups() if group.outcome == "mixed"][-1]
        rollout = next(r for r in reader.rollouts(k=mixed.k, task_id=mixed.task_id) if not r.success)
        failed = next((a for a in reader.attempts("after") if a.success == 0), None)
    root = f"/runs/{run.name}"
    found = {
        "overview": root,
        "rubric": f"{root}/pool/{told}",
        "task": f"{root}/tasks/{mixed.task_id}",
        "trajectory": f"{root}/rollouts/{rollout.id}",
        "why": f"{root}/sampler#slots",
        "compare": "/compare",
    }
    sections = ("pool", "sampler", "tasks", "rollouts", "judge", "evaluation", "health")
    found |= {name: f"{root}/{name}" for name in sections}
    if failed:
        found["attempt"] = f"{root}/rollouts/eval/after/{failed.task_id}/{failed.attempt}"
    return found


def take(run: Path, folder: Path, everything: bool) -> None:
    """Take the pictures of a run into a folder; those of the documentation must be small."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed: apt-get install chromium")
    with served(run) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        known = pages(run)
        for kind, names in DOCUMENTED.items():
            for name in known if everything else [name for name in names if name in known]:
                path = folder / (f"{name}.png" if kind == "light" else f"{name}-{kind}.png")
                _picture(browser, address + known[name], kind, TALL if name in TALL_PAGES else HEIGHT, path)
                assert everything or path.stat().st_size < LARGEST, f"{path} has {path.stat().st_size} bytes"
                print(f"{path}  {path.stat().st_size / 1000:.0f} kB")
        browser.close()


def _picture(browser: Browser, address: str, kind: str, height: int, path: Path) -> None:
    size = PHONE if kind == "phone" else {"width": WIDTH, "height": height}
    page = browser.new_page(viewport=size, color_scheme="dark" if kind == "dark" else "light")  # type: ignore[arg-type]
    page.goto(address)
    page.screenshot(path=path)
    page.close()


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--all"]
    take(Path(given[0]).absolute(), Path(given[1] if len(given) > 1 else "docs/screenshots"), "--all" in sys.argv)
