"""Sound tasks of both layouts come out as one object."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from arise.tasks import BUILD_FILES, load_corpus, read_task, task_types
from arise.types import (
    AgentSpec,
    Artifact,
    Healthcheck,
    Place,
    SetupCommand,
    SolutionSpec,
    StepSpec,
    Task,
    TaskSpec,
    VerifierSpec,
)
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

## Notes
For the agent too.

## role:critic
Not for the agent.
"""


PROMPT = "Convert the file.\n\n## Notes\nFor the agent too."


def read(directory: Path) -> TaskSpec:
    found = read_task(directory)
    assert isinstance(found, TaskSpec), found
    return found


def test_harbor(tmp_path: Path) -> None:
    path = write_task(tmp_path / "t1", name="org/t1")
    skill = path / "environment/skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\n---\n")
    found = read(path)
    types = ("data-cleaning-and-normalization",)
    assert found.task == Task("org/t1", "Write 42 to answer.txt.", types, "data", str(path), ("pdf",))
    assert found.solution is not None
    assert (found.environment.files, found.verifier.tests, found.solution.folder, found.skills) == tuple(
        path / n for n in ("environment", "tests", "solution", "environment/skills")
    )
    assert (found.agent.timeout, found.verifier.timeout, found.layout) == (60.0, 20.0, "harbor")


WHOLE = """
schema_version = "1.4"
multi_step_reward_strategy = "final"
artifacts = ["/app/out", {source = "/app/log", destination = "logs", exclude = ["*.tmp"], service = "db"}]
[task]
name = "org/whole"
[metadata]
difficulty = "hard"
[agent]
timeout_sec = 900
user = 1001
network_mode = "no-network"
prompt_prefix = "Be brief."
[verifier]
timeout_sec = 30
user = "root"
network_mode = "allowlist"
allowed_hosts = ["a.org", "*.b.org"]
reward_range = [-1.0, 1.0]
service = "db"
pytest_plugins = ["p"]
env = {A = "1"}
[verifier.environment]
docker_image = "checks:1"
[[verifier.collect]]
command = "dump"
[environment]
network_mode = "public"
docker_image = "work:1"
build_timeout_sec = 100
cpus = 2
memory_mb = 4096
storage_mb = 8192
gpus = 1
workdir = "/srv"
skills_dir = "/skills"
setup_commands = ["make"]
env = {B = "2"}
[environment.healthcheck]
command = "curl -f localhost"
interval_sec = 1
timeout_sec = 2
start_period_sec = 3
start_interval_sec = 4
retries = 5
[[environment.mcp_servers]]
name = "m"
[solution]
timeout_sec = 40
env = {C = "3"}
[[steps]]
name = "one"
min_reward = 0.5
artifacts = ["/app/one"]
[steps.agent]
timeout_sec = 10
[steps.verifier]
timeout_sec = 11
[steps.healthcheck]
command = "true"
[unknown]
key = "kept"
"""


@pytest.fixture
def whole(tmp_path: Path) -> TaskSpec:
    path = write_task(tmp_path / "whole")
    (path / "task.toml").write_text(WHOLE)
    (path / "steps").mkdir()
    shutil.copytree(path / "tests", path / "steps/one/tests")
    shutil.copytree(path / "solution", path / "steps/one/solution")
    (path / "steps/one/instruction.md").write_text("Begin.\n")
    return read(path)


def test_the_environment_is_whole(whole: TaskSpec) -> None:
    assert whole.environment == Place(
        files=whole.directory / "environment",
        skip=tuple(sorted(BUILD_FILES)),
        image="work:1",
        dockerfile=whole.directory / "environment/Dockerfile",
        build_timeout=100.0,
        workdir="/srv",
        env={"B": "2"},
        cpus=2.0,
        memory_mb=4096.0,
        storage_mb=8192.0,
        gpus=1.0,
        network="public",
        healthcheck=Healthcheck("curl -f localhost", 1.0, 2.0, 3.0, 4.0, 5),
        setup=(SetupCommand("make"),),
    )


def test_every_phase_is_whole(whole: TaskSpec) -> None:
    tests, skip = whole.directory / "tests", tuple(sorted(BUILD_FILES))
    assert whole.agent == AgentSpec(900.0, "1001", "none", "Be brief.")
    separate, collect = Place(tests, skip, image="checks:1"), ({"command": "dump"},)
    hosts = "allow:a.org,*.b.org"
    assert whole.verifier == VerifierSpec(
        tests, 30.0, {"A": "1"}, "root", hosts, (-1.0, 1.0), separate, collect, "db", ("p",)
    )
    assert whole.solution == SolutionSpec(whole.directory / "solution", 40.0, {"C": "3"})


def test_nothing_else_that_a_task_says_is_dropped(whole: TaskSpec) -> None:
    one = whole.directory / "steps/one"
    tests = replace(whole.verifier, tests=one / "tests", shared=whole.directory / "tests", timeout=11.0)
    solution = SolutionSpec(one / "solution", 40.0, {"C": "3"})
    kept = (Artifact("/app/one"),)
    assert whole.steps == (StepSpec("one", "Begin.", tests, AgentSpec(10.0), solution, 0.5, Healthcheck("true"), kept),)
    assert whole.artifacts == (Artifact("/app/out"), Artifact("/app/log", "logs", ("*.tmp",), "db"))
    assert (whole.reward_strategy, whole.skills_dir, whole.mcp_servers) == ("final", "/skills", ({"name": "m"},))
    assert whole.given["unknown"] == {"key": "kept"}
    assert whole.metadata == {"difficulty": "hard"}


def test_each_phase_has_its_own_user_and_network(tmp_path: Path) -> None:
    path = write_task(tmp_path / "whole")
    (path / "task.toml").write_text(WHOLE.partition("[[steps]]")[0].replace("[verifier.environment]", "[ignored]"))
    found = read(path)
    assert (found.place.user, found.place.network) == ("1001", "none")
    job = found.verifier_job
    assert (job.user, job.place.user, job.place.network) == ("root", "root", "allow:a.org,*.b.org")
    assert (job.tests, job.timeout, job.env, job.place.image) == ((path / "tests",), 30.0, {"A": "1"}, "work:1")


def test_legacy_keys_and_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "s3cret")
    path = write_task(tmp_path / "old")
    (path / "task.toml").write_text(LEGACY)
    found = read(path)
    assert (found.task.id, found.task.domain, found.agent.timeout) == ("old", "security", 900.0)
    assert found.verifier.env == {"KEY": "fallback", "OTHER": ""}, "nothing of the host's environment enters"
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
    assert (found.task.id, found.task.instruction, found.layout) == ("b1", PROMPT, "benchflow")
    assert found.solution is not None
    assert (found.verifier.tests, found.solution.folder) == (path / "verifier", path / "oracle")
    assert (found.task.task_types, found.verifier.env) == (("unit-harmonization",), {"A": "1"})
    assert (found.agent.timeout, found.verifier.timeout, found.solution.timeout) == (300.0, 30.0, 40.0)


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
