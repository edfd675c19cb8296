"""docs/paper.md is true: one home for each equation, symbols import, tags and tests exist, values are the defaults."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

from arise.config import Config
from arise.config.file import known_keys
from arise.types import Capability

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "docs" / "paper.md"
TAG = re.compile(r"Eqs?\. ([\d, ]+) —")
EQUATIONS, LINES, TABLES, FIGURES = 21, 29, 11, 6

Row = dict[str, str]


@cache
def table(heading: str) -> list[Row]:
    """The rows of the first table below a heading, by column name."""
    section = PAPER.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    names, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


MAPPED = [*table("Equations"), *table("Algorithm 1"), *table("Tables and figures")]
CHOICES = table("Choices where the paper is silent")


def first(row: Row) -> str:
    return next(iter(row.values()))


def symbol(dotted: str) -> object:
    """The object of a dotted path, e.g. `arise.method.ledger.Ledger.observe`."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(dotted)


def code(cell: str) -> str:
    """The contents of a cell that is one piece of code."""
    match = re.fullmatch(r"`([^`]+)`", cell)
    assert match, f"expected `code`, found {cell!r}"
    return match[1]


@cache
def tags() -> dict[int, list[str]]:
    """For each equation, the definitions in src whose docstring starts with its tag."""
    found: dict[int, list[str]] = {number: [] for number in range(1, EQUATIONS + 1)}
    for path in sorted((ROOT / "src" / "arise").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                match = TAG.match(ast.get_docstring(node) or "")
                for number in match[1].split(",") if match else []:
                    found[int(number)].append(node.name)
    return found


def test_every_equation_line_table_and_figure_has_one_row() -> None:
    assert [first(row) for row in table("Equations")] == [str(n) for n in range(1, EQUATIONS + 1)]
    assert [first(row) for row in table("Algorithm 1")] == [str(n) for n in range(1, LINES + 1)]
    items = [f"Table {n}" for n in range(1, TABLES + 1)] + [f"Figure {n}" for n in range(1, FIGURES + 1)]
    assert [first(row) for row in table("Tables and figures")] == items


@pytest.mark.parametrize("row", table("Equations"), ids=first)
def test_every_equation_has_exactly_one_function(row: Row) -> None:
    dotted = code(row["Function"])
    described = symbol(dotted).__doc__ or ""
    match = TAG.match(described)
    assert match, f"{dotted} must start with 'Eq. {row['Eq.']} —': {described!r}"
    assert int(row["Eq."]) in [int(number) for number in match[1].split(",")]
    assert tags()[int(row["Eq."])] == [dotted.rpartition(".")[2]]


@pytest.mark.parametrize("row", MAPPED, ids=first)
def test_every_row_names_a_function_or_a_reason(row: Row) -> None:
    if not row["Function"].startswith("none: "):
        assert symbol(code(row["Function"])) is not None


@pytest.mark.parametrize("row", MAPPED, ids=first)
def test_config_fields_exist(row: Row) -> None:
    if row["Config field"] != "—":
        assert code(row["Config field"]) in set(known_keys())


@cache
def names_in(path: Path) -> set[str]:
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    assigned = {t.id for n in nodes if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return assigned | {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("row", MAPPED + CHOICES, ids=first)
def test_tests_exist(row: Row) -> None:
    if row["Test"] == "—":
        assert row["Function"].startswith("none: "), "what is built is tested"
        return
    path, _, name = code(row["Test"]).partition("::")
    assert name.lower().startswith("test")
    assert name in names_in(ROOT / path)


@pytest.mark.parametrize("row", table("Values"), ids=first)
def test_values_equal_the_defaults(row: Row) -> None:
    field = code(row["Field"])
    if row["Default"] == "function":
        assert callable(symbol(field))
        return
    if field.startswith("arise."):
        found = symbol(field)
    else:
        found = Config()
        for name in field.split("."):
            found = getattr(found, name)
    expected = ast.literal_eval(code(row["Default"]))
    assert (found, type(found)) == (expected, type(expected))
    number = re.search(r"\d[\d,.]*(?:e-\d+)?", row["Value in the paper"])
    if number and isinstance(expected, int | float):
        assert float(number[0].replace(",", "")) == expected, "the paper's own words"


def test_every_choice_has_its_own_id() -> None:
    ids = [row["Id"] for row in CHOICES]
    assert len(set(ids)) == len(ids)


def test_capabilities_of_table_3() -> None:
    assert [str(c) for c in Capability] == ["Understanding", "Execution", "Verification", "Debugging", "Efficiency"]
