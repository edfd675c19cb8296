"""Evolved skills as packages of the agent-skills format: a folder with a SKILL.md each, named as the folder."""

import re
from pathlib import Path
from typing import Any

import yaml

from arise.report.exports.names import slug
from arise.run.pool_rows import PairLife
from arise.run.reader import RunReader
from arise.text.secrets import redact

LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024


def write_skills(run: RunReader, out: Path) -> list[Path]:
    """The last revision of every skill of a run."""
    written = []
    for pair in run.pairs():
        if not pair.skills:
            continue
        name = skill_name(pair)
        (out / name).mkdir(parents=True, exist_ok=True)
        path = out / name / "SKILL.md"
        path.write_text(skill_document(name, pair, run.folder.name))
        written.append(path)
    return written


def skill_name(pair: PairLife) -> str:
    """Lower-case words of the criterion with the rubric's id, so that no two skills share a name."""
    rubric = slug(pair.rubric.id, 16)
    words = pair.rubric.criteria_text.removeprefix("The agent ")
    return f"{slug(words, LONGEST_NAME - len(rubric) - 1)}-{rubric}"


def skill_document(name: str, pair: PairLife, run: str) -> str:
    """Front matter, the guidance, and the criterion it serves."""
    rubric, skill = pair.rubric, pair.skills[-1]
    description = _one_line(f"{rubric.criteria_text} Use this {_lower(rubric.applicability_condition)}")
    head: dict[str, Any] = {
        "name": name,
        "description": redact(description)[:LONGEST_DESCRIPTION],
        "metadata": {
            "run": run,
            "rubric": rubric.id,
            "revision": str(skill.revision),
            "capability": rubric.capability.value,
            "status": str(pair.standing),
        },
    }
    front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=10_000)
    title = _one_line(rubric.criteria_text)
    return f"---\n{front}---\n\n# {title}\n\n{redact(skill.text).strip()}\n"


def _one_line(text: str) -> str:
    """One line of plain text: no markup for a prompt, nothing that looks like the end of the front matter."""
    return re.sub("-{3,}", "-", " ".join(text.replace("<", "(").replace(">", ")").split()))


def _lower(text: str) -> str:
    start = text.strip()[:1].lower() + text.strip()[1:]
    return start if start.startswith(("when", "if ", "while", "before", "after")) else f"when {start}"
