"""17.9: what a task asks for and does not get is named, with the name by which it can be ignored."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from arise.compose.corpora import tasks_of
from arise.config import Config, HarborTasks
from arise.config.file import ConfigError, load_config
from arise.config.tasks import TaskNeed
from arise.errors import AriseError, Exit
from arise.sandbox import bubblewrap_capabilities
from arise.tasks import read_task, refused
from arise.tasks.needs import unmet_needs
from arise.types import SandboxCapabilities, TaskSpec
from tests.task_folders import write_task

ASKED = {
    "docker_image": '[environment]\ndocker_image = "x/y:1"',
    "cpus": "[environment]\ncpus = 1000",
    "memory": '[environment]\nmemory = "2G"',
    "storage": "[environment]\nstorage_mb = 10240",
    "gpus": "[environment]\ngpus = 1",
    "network": "[environment]\nallow_internet = true",
    "workdir": '[environment]\nworkdir = "/root"',
    "healthcheck": '[environment.healthcheck]\ncommand = "true"',
    "mcp_servers": '[[environment.mcp_servers]]\nname = "x"',
    "skills_dir": '[environment]\nskills_dir = "/skills"',
    "setup_commands": '[environment]\nsetup_commands = ["true"]',
    "user": '[agent]\nuser = "root"',
    "prompt_prefix": '[agent]\nprompt_prefix = "Be kind."',
    "verifier_environment": '[verifier.environment]\ndocker_image = "x"',
    "collect": '[[verifier.collect]]\ncommand = "true"',
    "service": '[verifier]\nservice = "db"',
    "artifacts": 'artifacts = ["/app/out"]',
    "pytest_plugins": '[verifier]\npytest_plugins = ["x"]',
}
BUBBLEWRAP = bubblewrap_capabilities()
CONTAINERS = SandboxCapabilities(
    "container",
    images=True,
    networks=frozenset({"none", "endpoint", "allow", "public"}),
    users=True,
    healthcheck=True,
    setup=True,
    compose=True,
    separate_verifier=True,
)
NEVER = {"mcp_servers", "prompt_prefix", "gpus"}
MET = [
    "",
    "[environment]\ncpus = 1\nmemory_mb = 256\nstorage_mb = 64\ngpus = 0",
    '[environment]\nnetwork_mode = "no-network"\nworkdir = "/app"\n[environment.env]',
    "[environment]\nallow_internet = false\nbuild_timeout_sec = 600",
    "[agent]\ntimeout_sec = 60",
    '[environment.env]\nA = "b"',
    '[verifier]\ntimeout_sec = 60\nreward_range = [-1.0, 1.0]\n[verifier.env]\nA = "b"',
]


def read(folder: Path, toml: str, dockerfile: str = "FROM debian:12\n") -> TaskSpec:
    directory = write_task(folder)
    root, section = (toml, "") if toml.startswith("artifacts") else ("", toml)
    (directory / "task.toml").write_text(f'{root}\n[task]\nname = "{folder.name}"\n{section}\n')
    (directory / "environment/Dockerfile").write_text(dockerfile)
    found = read_task(directory)
    assert isinstance(found, TaskSpec), found
    return found


@pytest.mark.parametrize("need", ASKED)
def test_what_a_task_does_not_get_is_refused_by_name(need: str, tmp_path: Path) -> None:
    task = read(tmp_path / "t", ASKED[need])
    (problem,) = refused(task, BUBBLEWRAP)
    assert f'"{need}" to tasks.ignore' in problem.remedy
    assert problem.path == tmp_path / "t/task.toml"
    assert refused(task, BUBBLEWRAP, (need,)) == []
    assert len(refused(task, BUBBLEWRAP, set(get_args(TaskNeed)) - {need})) == 1


@pytest.mark.parametrize("toml", MET)
def test_what_a_task_gets_is_no_problem(toml: str, tmp_path: Path) -> None:
    assert refused(read(tmp_path / "t", toml), BUBBLEWRAP) == []


@pytest.mark.parametrize(
    ("dockerfile", "line"),
    [
        ("FROM ubuntu:24.04\n# a comment\nWORKDIR /app\nCOPY . /app/\n", ""),
        ("from debian\ncopy . .\n\n", ""),
        ("FROM python:3.13-slim\n", "FROM python:3.13-slim"),
        ("FROM debian\nRUN apt-get update && \\\n  apt-get install -y gcc\n", "RUN apt-get update"),
        ("FROM debian\nWORKDIR /srv\n", "WORKDIR /srv"),
        ("FROM debian\nCOPY data.csv /data/\n", "COPY data.csv /data/"),
        ("FROM debian\nENV A=b\n", "ENV A=b"),
    ],
)
def test_a_dockerfile_may_ask_for_a_plain_system_only(dockerfile: str, line: str, tmp_path: Path) -> None:
    unmet = list(unmet_needs(read(tmp_path / "t", "", dockerfile), BUBBLEWRAP))
    assert [found.need for found in unmet] == (["dockerfile"] if line else [])
    assert all(line in found.what for found in unmet)


def test_other_containers_are_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "t")
    (tmp_path / "t/environment/docker-compose.yaml").write_text("services: {main: {}, db: {image: postgres}}\n")
    found = read_task(tmp_path / "t")
    assert isinstance(found, TaskSpec)
    assert [unmet.need for unmet in unmet_needs(found, BUBBLEWRAP)] == ["compose"]


@pytest.mark.parametrize("need", ASKED)
def test_what_the_sandboxes_offer_decides(need: str, tmp_path: Path) -> None:
    found = unmet_needs(read(tmp_path / "t", ASKED[need], "FROM python:3.13-slim\n"), CONTAINERS)
    assert {unmet.need for unmet in found} == {need} & NEVER


def test_a_sandbox_without_a_separate_environment_refuses_variables(tmp_path: Path) -> None:
    task = read(tmp_path / "t", '[environment.env]\nA = "b"')
    (problem,) = refused(task, replace(BUBBLEWRAP, env=False))
    assert '"env" to tasks.ignore' in problem.remedy


def test_a_variable_of_this_machine_is_named_unless_it_has_a_default(tmp_path: Path) -> None:
    task = write_task(tmp_path / "t")
    file = task / "task.toml"
    file.write_text(file.read_text() + '[environment.env]\nA = "${B:-c}"\n[verifier.env]\nKEY = "${JUDGE_KEY}"\n')
    found = read_task(task)
    assert isinstance(found, TaskSpec)
    assert found.environment.env == {"A": "c"}
    (problem,) = refused(found, CONTAINERS)
    assert "verifier.env.KEY: asks for $JUDGE_KEY of this machine" in str(problem)
    assert refused(found, CONTAINERS, ["env"]) == []


def test_several_steps_cannot_be_ignored(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "t")
    (directory / "steps/one").mkdir(parents=True)
    (directory / "steps/one/instruction.md").write_text("Begin.")
    (directory / "tests").rename(directory / "steps/one/tests")
    with (directory / "task.toml").open("a") as file:
        file.write('[[steps]]\nname = "one"\n')
    task = read_task(directory)
    assert isinstance(task, TaskSpec), task
    (problem,) = refused(task, BUBBLEWRAP, get_args(TaskNeed))
    assert "several steps" in problem.what
    assert refused(task, replace(BUBBLEWRAP, steps=True)) == []


def config(tmp_path: Path, **more: object) -> Config:
    tasks = {"kind": "harbor", "train": str(tmp_path / "train"), "evaluation": str(tmp_path / "eval")}
    return Config.model_validate({"tasks": tasks | more, "sandbox": {"kind": "bubblewrap"}})


def test_a_run_with_such_a_task_is_refused_with_its_name_before_anything_is_made(tmp_path: Path) -> None:
    read(tmp_path / "train/hungry", ASKED["memory"])
    read(tmp_path / "eval/other", "")
    with pytest.raises(
        AriseError, match=r"hungry/task.toml: environment.memory_mb: asks for 2048, a sandbox has 512"
    ) as e:
        tasks_of(config(tmp_path), tmp_path / "run")
    assert e.value.exit_code is Exit.TASKS
    assert not (tmp_path / "run").exists()
    train, held_out = tasks_of(config(tmp_path, ignore=["memory"]), tmp_path / "run")
    assert (list(train), list(held_out)) == (["hungry"], ["other"])


def test_an_unknown_need_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[tasks]\nkind = "harbor"\ntrain = "a"\nevaluation = "b"\nignore = ["docker"]\n')
    with pytest.raises(ConfigError, match="docker"):
        load_config([path])
    path.write_text('[tasks]\nkind = "harbor"\ntrain = "a"\nevaluation = "b"\nignore = ["dockerfile"]\n')
    loaded = load_config([path]).tasks
    assert isinstance(loaded, HarborTasks)
    assert loaded.ignore == ["dockerfile"]
