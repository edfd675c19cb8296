"""Evolved skills as agent-skills packages: one folder with a SKILL.md each, with the same name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from arise.report.exports.names import slug
from arise.run.pool_rows import PairLife
from arise.run.reader import RunReader
from arise.text.secrets import redact
from arise.types import Rubric

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024


def write_skills(run: RunReader, out: Path) -> list[Path]:
    """Write the last revision of every skill of a run."""
    written = []
    for pair in run.pairs():
        if not pair.skills:
            continue
        name = skill_name(pair.rubric)
        (out / name).mkdir(parents=True, exist_ok=True)
        path = out / name / "SKILL.md"
        path.write_text(skill_document(name, pair, run.folder.name))
        written.append(path)
    return written


def skill_name(of: Rubric) -> str:
    """Return the criterion's words in lower case with the rubric's id, so that names are unique."""
    rubric = slug(of.id, 16)
    words = of.criteria_text.removeprefix("The agent ")
    return f"{slug(words, LONGEST_NAME - len(rubric) - 1)}-{rubric}"


def skill_document(name: str, pair: PairLife, run: str) -> str:
    """Return front matter, the guidance, and its criterion."""
    skill = pair.skills[-1]
    metadata = {
        "run": run,
        "rubric": pair.rubric.id,
        "revision": str(skill.revision),
        "capability": pair.rubric.capability.value,
        "status": str(pair.standing),
    }
    return package(name, pair.rubric, skill.text, metadata)


def package(name: str, rubric: Rubric, text: str, metadata: Mapping[str, str]) -> str:
    """Return a SKILL.md: front matter with metadata, the criterion as title, the guidance. Redact keys."""
    description = _one_line(f"{rubric.criteria_text} Use this {_lower(rubric.applicability_condition)}")
    head: dict[str, Any] = {
        "name": name,
        "description": redact(description)[:LONGEST_DESCRIPTION],
        "metadata": dict(metadata),
    }
    front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=10_000)
    title = _one_line(rubric.criteria_text)
    return f"---\n{front}---\n\n# {title}\n\n{redact(text).strip()}\n"


def _one_line(text: str) -> str:
    """Return one line of plain text without prompt markup or a front matter delimiter."""
    return re.sub("-{3,}", "-", " ".join(text.replace("<", "(").replace(">", ")").split()))


def _lower(text: str) -> str:
    start = text.strip()[:1].lower() + text.strip()[1:]
    return start if start.startswith(("when", "if ", "while", "before", "after")) else f"when {start}"
