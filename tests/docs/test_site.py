"""The documentation builds in strict mode.

Every internal link resolves, every page is in the navigation, nothing is loaded from elsewhere, every setting is
described once.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from scripts.docs_reference import commands, documented_keys, settings_file
from typer.main import get_command

from arise.cli.app import app

ROOT = Path(__file__).parents[2]
MEGABYTE = 2**20
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The ids, links and loaded resources of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADS and LOADS[tag] in values and values.get("rel") != "canonical":
            self.loads.append(values[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_every_internal_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue  # its links start at the root of a server
        for link in (*page.links, *page.loads):
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            if not target.is_file():
                broken.append(f"{path.name}: {link}")
            elif address.fragment and unquote(address.fragment) not in pages[target].ids:
                broken.append(f"{path.name}: {link} (no such place)")
    assert broken == []


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 30
    outside = {load for page in pages.values() for load in page.loads if urlsplit(load).netloc}
    assert outside == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"@import|url\(\s*[\"']?https?:", styles) == []


def in_navigation(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from in_navigation(inner)


def test_every_page_is_in_the_navigation_once(site: Path, pages: dict[Path, Page]) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = Counter(
        name.replace("README.md", "index.md").replace(".md", ".html") for name in in_navigation(settings["nav"])
    )
    built = {str(path.relative_to(site.resolve())) for path in pages} - {"404.html"}
    assert set(named) == built
    assert set(named.values()) == {1}


def test_decisions_are_in_order_in_the_navigation() -> None:
    numbers = re.findall(r"decisions/(\d{4})-", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert numbers == sorted(numbers)


def test_every_list_begins_after_an_empty_line() -> None:
    """Without it the site shows one paragraph with dashes in it, where GitHub shows a list."""
    joined = re.compile(r"^(?![-|#>\d ])\S.*\n(?:- |1\. )", re.MULTILINE)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert joined.findall(prose) == [], path.name


def test_formulas_are_rendered_and_none_is_left_as_source(pages: dict[Path, Page], site: Path) -> None:
    text = (site / "how-it-works.html").read_text(encoding="utf-8")
    assert text.count("<math") > 30
    assert [path.name for path in pages if "arithmatex" in path.read_text(encoding="utf-8")] == []


def test_the_command_line_reference_has_every_command(site: Path) -> None:
    text = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    found = ["arise " + " ".join(words) for words, _ in commands(get_command(app))]
    assert len(found) > 15
    assert [name for name in found if f"<code>{name}</code>" not in text] == []


def test_every_setting_is_described_exactly_once() -> None:
    known = list(documented_keys())
    assert [key for key, in_code, in_file in known if not in_code and not in_file] == []
    assert [key for key, in_code, in_file in known if in_code and in_file] == []
    assert set(settings_file()) - {key for key, *_ in known} == set()


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not urlsplit(link).scheme]
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_results_are_compact() -> None:
    files = [path for path in (ROOT / "docs" / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 5 * MEGABYTE
    assert [path.name for path in files if path.suffix == ".svg"] == []
