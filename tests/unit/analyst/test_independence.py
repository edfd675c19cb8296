"""The analyst imports nouns, catalogue and text rules: no world, no loop, no reward, no machine-learning library."""

import ast
from pathlib import Path

import arise.analyst

ALLOWED = ("arise.analyst", "arise.taxonomy", "arise.text.rules", "arise.types")
OUTCOME = {"reward", "success", "fault", "outcome", "system_prompt", "shown_skills"}
SOURCES = sorted(Path(arise.analyst.__file__).parent.rglob("*.py"))


def test_imports() -> None:
    imported = {
        node.module
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    foreign = {name for name in imported if name.startswith("arise") and not name.startswith(ALLOWED)}
    assert not foreign
    assert not imported & {"torch", "numpy", "transformers"}


def test_nothing_reads_an_outcome_or_the_system_prompt() -> None:
    read = {
        (path.name, node.attr)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in OUTCOME
    }
    assert not read
