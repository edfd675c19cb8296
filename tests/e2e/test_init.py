"""A folder that `arise init` wrote: `arise train` works there as it is."""

import json
import shutil
from pathlib import Path

import pytest

from arise.engines.local.pretrained import cache_root, pull
from arise.errors import Exit
from arise.run.reader import RunReader
from tests.e2e.runs import call, settings
from tests.tool_models import write_tool_model


@pytest.fixture
def project(cache: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    done = call(cache, "init", str(folder), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"next: cd '{folder}' && arise train" in done.stdout
    return folder


def test_arise_train_works_in_a_new_project(project: Path, cache: Path) -> None:
    done = call(cache, "train", "--run-dir", "runs/first", *settings(["train.iterations=2"]), folder=project)
    assert done.returncode == 0, done.stderr
    assert "shows no tools" not in done.stdout, "the project's agent calls none"
    with RunReader.open(project / "runs" / "first") as run:
        assert run.config()["agent"]["path"] == "my_agent:MyAgent"
        assert len(run.iterations()) == 2
        assert {row.stop for row in run.rollouts(limit=-1)} <= {"finished", "turn_limit", "token_limit"}


def test_the_sample_tasks_of_a_new_project_are_sound(project: Path, cache: Path) -> None:
    for tasks in ("tasks/train", "tasks/held-out"):
        done = call(cache, "tasks", "check", tasks, folder=project)
        assert done.returncode == 0, done.stdout + done.stderr
    done = call(cache, "config", "arise.toml", "own-tasks.toml", "--json", folder=project)
    assert json.loads(done.stdout)["tasks"]["train"] == "tasks/train"


def test_your_own_model_and_task_are_trained(project: Path, cache: Path) -> None:
    """The README's way: put a model folder and a task folder into the project, change one line, train."""
    write_tool_model(project / "models" / "mine", epochs=0, window=2048)
    own = shutil.copytree(project / "tasks/train/sum-small", project / "tasks/train/hello")
    (own / "task.toml").write_text('schema_version = "1.0"\n[task]\nname = "mine/hello"\n')
    (own / "instruction.md").write_text("Write the word hello to hello.txt.\n")
    (own / "tests" / "test.sh").write_text("[ -s hello.txt ]; echo $((! $?)) > /logs/verifier/reward.txt\n")
    config = project / "own-tasks.toml"
    config.write_text(config.read_text().replace('name = "smollm2-135m"', 'name = "models/mine"'))
    short = ["train.iterations=1", "train.group_size=2", "agent.max_turns=2", "agent.max_tokens=32"]
    words = [word for change in short for word in ("--set", change)]
    done = call(cache, "train", "arise.toml", "own-tasks.toml", "--run-dir", "runs/own", *words, folder=project)
    assert done.returncode == 0, done.stderr
    with RunReader.open(project / "runs" / "own") as run:
        assert run.config()["agent"]["kind"] == "tools"
        assert run.config()["model"]["name"] == "models/mine"
        assert {row.task_id for row in run.rollouts(limit=-1)} <= {"sums/sum-small", "mine/hello"}
    out = project / "trained"
    exported = call(cache, "export", "runs/own", "--format", "hf", "--out", str(out), folder=project)
    assert exported.returncode == 0, exported.stderr
    assert (out / "model.safetensors").is_file()


@pytest.mark.slow
def test_smollm2_is_told_how_to_act_on_tasks_of_a_new_project(project: Path) -> None:
    pull("smollm2-135m")
    changes = ["train.iterations=1", "train.group_size=4", "evaluation.attempts=4"]
    changes += ["agent.max_turns=3", "agent.max_tokens=128"]
    words = [word for change in changes for word in ("--set", change)]
    done = call(cache_root(), "train", "arise.toml", "own-tasks.toml", "--run-dir", "runs/own", *words, folder=project)
    assert done.returncode == 0, done.stderr
    lines = [line for path in (project / "runs/own/evaluations").iterdir() for line in path.read_text().splitlines()]
    attempts = [json.loads(line)["rollout"]["trajectory"] for line in lines]
    assert len(attempts) == 8
    for attempt in attempts:
        first = attempt["turns"][0]
        told = "".join(seen["text"] for seen in first["observations"])
        assert first["calls"] or "To act, call a tool like this:\n<tool_call>" in told, first
        assert len(attempt["turns"]) > 1, attempt


def test_init_leaves_a_folder_that_is_not_empty_alone(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = call(cache, "init", ".", folder=tmp_path)
    assert done.returncode == Exit.STORAGE
    assert ". is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
