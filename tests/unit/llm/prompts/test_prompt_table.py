"""The table of docs/prompts.md: every rule is where it says, and every heading of every prompt has a row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROMPTS = ROOT / "src/arise/llm/prompts"
WHOLE_FILE = "(whole file)"


def rows() -> list[tuple[str, str, str, str]]:
    lines = (ROOT / "docs/prompts.md").read_text("utf-8").splitlines()
    found = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if re.match(r"\| [A-Z]\d+ \|", line)]
    return [(row[0].strip(), row[1].strip(), row[2].strip(), row[3].strip()) for row in found]


def sections(name: str) -> dict[str, str]:
    """The text under each heading of a prompt file."""
    found = {WHOLE_FILE: (PROMPTS / name).read_text("utf-8")}
    parts = re.split(r"^#+ (.+)$", found[WHOLE_FILE], flags=re.MULTILINE)
    return found | dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_rule_is_where_the_table_says(row: tuple[str, str, str, str]) -> None:
    _, rule, name, heading = row
    text = sections(name)[heading]
    for word in re.findall(r"`([^`]+)`", rule):
        assert word in text, f"{word!r} is not under {heading!r} of {name}"


def test_every_heading_has_a_row() -> None:
    named = {(name, heading) for _, _, name, heading in rows()}
    for path in PROMPTS.rglob("*.md"):
        name = str(path.relative_to(PROMPTS))
        headings = set(sections(name)) - {WHOLE_FILE}
        assert headings <= {heading for row_name, heading in named if row_name == name}, name


def test_ids_are_unique() -> None:
    ids = [row[0] for row in rows()]
    assert len(ids) == len(set(ids)) >= 60
