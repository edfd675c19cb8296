"""What has one home stays there: SQL in `run/`, iteration numbers in `run/numbering.py`, number formats in `text/`."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "arise"
SOURCES = sorted(SOURCE.rglob("*.py"))
TEMPLATES = sorted((SOURCE / "report" / "dashboard" / "templates").glob("*.html"))
READ_BY_PEOPLE = ("cli", "compose", "evaluation", "observe", "report", "run")
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT\b.*\bINTO|UPDATE \w+ SET|DELETE FROM|PRAGMA \w+|CREATE TABLE)\b", re.DOTALL
)
PERCENT = re.compile(r"100(\.0)? \*.*:[+z]*\.\df?\}|:\.\d%\}")
"""A share that is written in percent by hand."""


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def outside(*homes: str) -> list[Path]:
    """Return the sources outside the named packages and modules of `arise`."""
    places = [SOURCE / home for home in homes]
    return [path for path in SOURCES if not any(path == place or place in path.parents for place in places)]


def strings(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values))
    return found


@pytest.mark.parametrize("path", outside("run", "analyze/readers"), ids=shown)
def test_sql_on_a_run_stands_in_run_only(path: Path) -> None:
    """Readers of trajectories may read the databases of other tools."""
    assert not [text for text in strings(path) if SQL.search(text)]
    assert not re.search(r"\.query\(|\bdb\.execute\(", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [p for p in SOURCES if p.relative_to(SOURCE).parts[0] in READ_BY_PEOPLE], ids=shown)
def test_iterations_are_numbered_by_one_function(path: Path) -> None:
    if path.name != "numbering.py":
        assert not re.findall(r"\bk \+ 1\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEMPLATES, ids=shown)
def test_templates_show_iterations_as_people_number_them(path: Path) -> None:
    assert not re.findall(r"\{\{[^}]*\.k\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", outside("text/numbers.py"), ids=shown)
def test_percentages_are_written_in_one_place(path: Path) -> None:
    if path.parent.name != "charts":  # ticks of an axis have no decimals
        assert not [line for line in path.read_text(encoding="utf-8").splitlines() if PERCENT.search(line)]
