"""Sound tasks of both layouts come out as one object."""

import json
from pathlib import Path

import pytest

from arise.tasks import TaskDir, load_corpus, read_task, task_types
from arise.types import Task
from tests.task_folders import write_task

LEGACY = """version = 1.0
[metadata]
author_name = "A"
difficulty = "hard"
category = "security"
tags = ["x"]
[agent]
timeout_sec = 900.0
[verifier]
env = { KEY = "${HOST_KEY:-fallback}", OTHER = "${HOST_SECRET}" }
[environment]
build_timeout_sec = 600.0
docker_image = "org/image:1"
cpus = 1
memory = "2G"
storage = "10G"
allow_internet = false
"""
BENCHFLOW = """---
schema_version: "1.3"
metadata:
  category: office
  task_type: [their-own-word]
  arise: {task_types: [unit-harmonization]}
agent: {timeout_sec: 300}
verifier: {type: test-script, timeout_sec: 30, env: {A: 1}}
sandbox: {cpus: 2, memory_mb: 2048}
oracle: {timeout_sec: 40}
---
Some notes.

## prompt
Convert the file.

## notes
Not for the agent.
"""


def read(directory: Path) -> TaskDir:
    found = read_task(directory)
    assert isinstance(found, TaskDir), found
    return found


def test_harbor(tmp_path: Path) -> None:
    path = write_task(tmp_path / "t1", name="org/t1")
    skill = path / "environment/skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\n---\n")
    found = read(path)
    types = ("data-cleaning-and-normalization",)
    assert found.task == Task("org/t1", "Write 42 to answer.txt.", types, "data", str(path), ("pdf",))
    assert (found.environment, found.tests, found.solution) == tuple(
        path / n for n in ("environment", "tests", "solution")
    )
    assert (found.agent_timeout, found.verifier_timeout, found.layout) == (60.0, 20.0, "harbor")


def test_legacy_keys_and_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "s3cret")
    path = write_task(tmp_path / "old")
    (path / "task.toml").write_text(LEGACY)
    found = read(path)
    assert (found.task.id, found.task.domain, found.agent_timeout) == ("old", "security", 900.0)
    assert found.verifier_env == {"KEY": "fallback", "OTHER": ""}, "nothing of the host's environment enters"
    assert found.metadata["difficulty"] == "hard"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_benchflow(tmp_path: Path, end: str) -> None:
    path = tmp_path / "b1"
    for name in ("environment", "verifier", "oracle"):
        (path / name).mkdir(parents=True)
    (path / "task.md").write_bytes(BENCHFLOW.replace("\n", end).encode())
    (path / "verifier/test.sh").write_text("true")
    (path / "oracle/solve.sh").write_text("true")
    found = read(path)
    assert (found.task.id, found.task.instruction, found.layout) == ("b1", "Convert the file.", "benchflow")
    assert (found.tests, found.solution) == (path / "verifier", path / "oracle")
    assert (found.task.task_types, found.verifier_env) == (("unit-harmonization",), {"A": "1"})
    assert (found.agent_timeout, found.verifier_timeout, found.solution_timeout) == (300.0, 30.0, 40.0)


def test_corpus_may_nest_and_tags_take_precedence(tmp_path: Path) -> None:
    write_task(tmp_path / "org/one")
    write_task(tmp_path / "two")
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "tags.json").write_text(json.dumps({"two": ["test-authoring", "code-refactoring"]}))
    one, two = load_corpus(tmp_path)
    assert (one.task.id, two.task.id) == ("one", "two")
    assert one.task.task_types == ("data-cleaning-and-normalization",)
    assert two.task.task_types == ("test-authoring", "code-refactoring")


def test_a_single_task_is_a_corpus(tmp_path: Path) -> None:
    assert len(load_corpus(write_task(tmp_path / "one"))) == 1


def test_links_inside_a_part_are_sound(tmp_path: Path) -> None:
    path = write_task(tmp_path / "t")
    (path / "environment/d").mkdir()
    (path / "environment/d/link").symlink_to("../data.csv")
    (path / "environment/python").symlink_to("/usr/bin/python3")
    (path / "environment/later").symlink_to("/app/made-by-the-agent")
    read(path)


def test_registry_has_82_types_in_full() -> None:
    types = task_types()
    assert len(types) == 82
    assert len({found.name for found in types.values()}) == 82
    assert len({found.group for found in types.values()}) == 6
    for name, found in types.items():
        assert name == found.id == "-".join(found.name.lower().replace(",", "").split())
        for words in (found.definition, found.true_criteria, found.false_criteria):
            assert len(words) > 40
            assert words.endswith(".")
        assert found.false_criteria.startswith("Not ")


def test_worked_checks_of_the_paper_are_in_the_criteria() -> None:
    types = task_types()
    assert "by-product" in types["physical-or-process-calculation"].false_criteria
    assert "patching source" in types["build-and-dependency-configuration"].false_criteria
    assert "nothing is executed" in types["service-deployment-and-operation"].false_criteria
    assert "metadata" in types["citation-and-provenance-tracing"].false_criteria
    assert "studies" in types["medical-and-clinical-data-interpretation"].false_criteria
