"""Corpora from lists, registries and datasets; splits; and what lint names."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.tasks import app
from arise.errors import Exit
from arise.tasks import load_corpus, read_corpus, read_task
from arise.tasks.lint import lint
from arise.tasks.sources import content_digest
from arise.tasks.split import by_domain, split
from arise.types import TaskSpec
from tests.task_folders import DIFF_TEST, write_task
from tests.unit.tasks.test_broken_tasks import BROKEN

DOMAINS = ("Finance", "Healthcare", "Mathematics")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Thirty tasks of three domains."""
    for at in range(30):
        path = write_task(tmp_path / "corpus" / f"t{at:02d}") / "task.toml"
        path.write_text(path.read_text().replace('"data"', f'"{DOMAINS[at % 3]}"'))
    return tmp_path / "corpus"


def test_a_list_a_registry_and_a_dataset_name_the_same_tasks(many: Path) -> None:
    (many / "some.txt").write_text("# two of them\nt00\n\nt01\n")
    tasks = [{"name": f"x/t0{at}", "path": f"t0{at}"} for at in range(2)]
    (many / "registry.json").write_text(
        json.dumps([{"name": "a", "version": "1", "tasks": tasks}, {"name": "b", "version": "1", "tasks": []}])
    )
    pins = "".join(
        f'[[tasks]]\nname = "x/t0{at}"\ndigest = "sha256:{content_digest(many / f"t0{at}")}"\n' for at in range(2)
    )
    (many / "dataset.toml").write_text(pins)
    for source in ("some.txt", "registry.json#a", "registry.json#a@1", "dataset.toml"):
        assert [task.task.id for task in load_corpus(many / source)] == ["t00", "t01"], source


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("l.txt", "t00\nnowhere\n", "nowhere, which is not a folder"),
        ("registry.json", '[{"name": "a", "tasks": []}, {"name": "b", "tasks": []}]', "has 2 datasets"),
        ("registry.json#c", '[{"name": "a", "tasks": []}]', "has no dataset 'c'"),
        ("registry.json", '[{"name": "a", "tasks": [{"name": "x", "git_url": "u", "path": "p"}]}]', "git repository"),
        ("registry.json", "{", "cannot be parsed"),
        ("dataset.toml", '[[tasks]]\nname = "x/t00"\ndigest = "sha256:00"\n', "is not the version that dataset.toml"),
        ("dataset.toml", '[[tasks]]\nname = "x/absent"\n', "is not a folder"),
    ],
)
def test_what_is_wrong_with_a_source_is_named(many: Path, name: str, text: str, said: str) -> None:
    (many / name.partition("#")[0]).write_text(text)
    problems = read_corpus(many / name).problems
    assert any(said in str(problem) for problem in problems), problems


def test_a_split_holds_out_a_share_of_every_domain_and_does_not_move_others(many: Path) -> None:
    tasks = load_corpus(many)
    parts = split(tasks, 0.2)
    assert {name: count for name, count, _ in by_domain(parts.held_out)} == dict.fromkeys(DOMAINS, 2)
    assert len(parts.train) + len(parts.held_out) == 30
    whole = split(tasks, 0.0, domains=["Finance"])
    assert {task.task.domain for task in whole.held_out} == {"Finance"}
    assert split(tasks, 0.2) == parts
    assert split(tasks, 0.2, seed=1) != parts


def test_split_and_list_commands(many: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["split", str(many), "--out", str(tmp_path / "lists"), "--share", "0.1"])
    assert done.exit_code == 0, done.output
    assert len(load_corpus(tmp_path / "lists" / "train.txt")) == 27
    assert len(load_corpus(tmp_path / "lists" / "held-out.txt")) == 3
    listed = CliRunner().invoke(app, ["list", str(tmp_path / "lists" / "train.txt")])
    assert "Finance          9   33.3" in listed.stdout
    assert "Total           27  100.0" in listed.stdout


def test_show_says_which_sandbox_and_why(tmp_path: Path) -> None:
    task = write_task(tmp_path / "t")
    assert "bubblewrap: it needs no image" in CliRunner().invoke(app, ["show", str(task)]).stdout
    (task / "environment/Dockerfile").write_text("FROM python:3.13-slim\n")
    assert "its Dockerfile says 'FROM python:3.13-slim'" in CliRunner().invoke(app, ["show", str(task)]).stdout


LINTED = {
    "no reward": ({"tests/test.sh": "true\n"}, "never writes a reward"),
    "windows": ({"tests/test.sh": DIFF_TEST.replace("\n", "\r\n")}, "Windows line ends"),
    "no from": ({"environment/Dockerfile": "RUN true\n"}, "has no FROM"),
    "copy from outside": ({"environment/Dockerfile": "FROM debian\nCOPY ../tests /t\n"}, "outside its folder"),
    "copy of nothing": ({"environment/Dockerfile": "FROM debian\nCOPY absent.csv /x\n"}, "'absent.csv', which is not"),
    "tests for the agent": ({"environment/copy.sh": DIFF_TEST}, "shows the agent test.sh"),
    "solution for the agent": (
        {"environment/a.sh": "echo the very same solution\n", "solution/solve.sh": "echo the very same solution\n"},
        "shows the agent solve.sh",
    ),
}


@pytest.mark.parametrize("name", LINTED)
def test_lint_names_the_fault(name: str, tmp_path: Path) -> None:
    files, said = LINTED[name]
    task = write_task(tmp_path / "t")
    for path, text in files.items():
        (task / path).write_bytes(text.encode())
    found = read_task(task)
    assert isinstance(found, TaskSpec)
    assert [said in str(problem) for problem in lint(found)] == [True]


def test_every_fault_of_200_broken_variants_is_named(tmp_path: Path) -> None:
    """Each way to break a task, in tasks that differ in name, format of the instruction, files and environment."""
    faults: list[tuple[Path, str]] = []
    for copy in range(6):
        for name, (break_it, said) in BROKEN.items():
            task = write_task(tmp_path / f"{copy}" / f"{name}-{copy}")
            (task / "instruction.md").write_text(f"Variant {copy}: write 42 to answer.txt.\n" * (copy + 1))
            (task / "environment" / f"extra-{copy}.txt").write_text("x" * copy)
            break_it(task)
            faults.append((task, said))
        for name, (files, said) in LINTED.items():
            task = write_task(tmp_path / f"{copy}" / f"lint-{name.replace(' ', '-')}-{copy}")
            for path, text in files.items():
                (task / path).write_bytes(text.encode())
            faults.append((task, said))
    assert len(faults) >= 200
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--lint"])
    assert done.exit_code == Exit.TASKS
    told = done.stdout.splitlines()
    unnamed = [
        (task.name, said) for task, said in faults if not any(task.name in line and said in line for line in told)
    ]
    assert unnamed == []


@pytest.mark.slow
def test_lint_of_3000_tasks_takes_less_than_15_processor_seconds(tmp_path: Path) -> None:
    for at in range(3000):
        write_task(tmp_path / f"g{at // 100}" / f"t{at:04d}")
    begun = time.process_time()
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--lint"])
    taken = time.process_time() - begun
    assert done.exit_code == 0, done.output[:2000]
    assert taken < 15, taken
