"""What has one home stays there: SQL in `run/`, iteration numbers in `run/numbering.py`, number formats in `text/`."""

import ast
import re
from pathlib import Path

from tests.architecture.sources import SOURCE, SOURCES, nodes, offenders, text

TEMPLATES = sorted((SOURCE / "report" / "dashboard" / "templates").glob("*.html"))
READ_BY_PEOPLE = ("cli", "compose", "evaluation", "observe", "report", "run")
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT\b.*\bINTO|UPDATE \w+ SET|DELETE FROM|PRAGMA \w+|CREATE TABLE)\b", re.DOTALL
)
PERCENT = re.compile(r"100(\.0)? \*.*:[+z]*\.\df?\}|:\.\d%\}")
"""A share that is written in percent by hand."""


def outside(*homes: str) -> list[Path]:
    """Return the sources outside the named packages and modules of `arise`."""
    places = [SOURCE / home for home in homes]
    return [path for path in SOURCES if not any(path == place or place in path.parents for place in places)]


def strings(path: Path) -> list[str]:
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values))
    return found


def sql(path: Path) -> list[str]:
    calls: list[str] = re.findall(r"\.query\(|\bdb\.execute\(", text(path))
    return calls + [found for found in strings(path) if SQL.search(found)]


def test_sql_on_a_run_is_in_the_run_package_only() -> None:
    """Readers of trajectories may read the databases of other tools."""
    assert offenders(outside("run", "analyze/readers"), sql) == {}


def test_iterations_are_numbered_by_one_function() -> None:
    read = [path for path in SOURCES if path.relative_to(SOURCE).parts[0] in READ_BY_PEOPLE]
    counted = [path for path in read if path.name != "numbering.py"]
    assert offenders(counted, lambda path: re.findall(r"\bk \+ 1\b", text(path))) == {}


def test_templates_show_iterations_as_people_number_them() -> None:
    assert TEMPLATES
    assert offenders(TEMPLATES, lambda path: re.findall(r"\{\{[^}]*\.k\b", text(path))) == {}


def test_percentages_are_written_in_one_place() -> None:
    """Ticks of an axis have no decimals and are written by the charts."""
    written = [path for path in outside("text/numbers.py") if path.parent.name != "charts"]
    assert offenders(written, lambda path: [row for row in text(path).splitlines() if PERCENT.search(row)]) == {}
