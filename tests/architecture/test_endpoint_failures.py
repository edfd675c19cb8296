"""docs/endpoint.md, "Failures and their tests": every failure names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_failure_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "endpoint.md").read_text(encoding="utf-8")
    section = page.split("\n## Failures and their tests\n")[1].split("\n## ")[0]
    _, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert len(rows) == 18
    for row in rows:
        named = re.findall(r"`(tests/[^`]+)::(test_\w+)`", row)
        assert named, row
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (path, name)
