"""`arise` as a user calls it: a real process, its output and its exit code."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import arise
from arise.cli.main import limit_spinning, written_by
from arise.config import Config
from arise.run.folder import claim

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from arise.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120", "NO_COLOR": "1"},
        timeout=60,
        check=False,
    )


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"arise {arise.__version__}\n")


def test_help() -> None:
    for flag in ("--help", "-h"):
        done = run(flag)
        assert done.returncode == 0
        assert "Train agents on what they still get wrong." in done.stdout
        assert "config" in done.stdout


def test_help_groups_commands_in_the_order_of_their_use() -> None:
    shown = run("--help").stdout
    panels = ["Train", "See what is still wrong", "Measure", "Publish and check", "Prepare"]
    places = [shown.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    first = [line.split()[1] for line in shown[places[0] : places[1]].splitlines() if line.startswith("│ ")]
    assert [name for name in first if name in {"init", "train", "resume"}] == ["init", "train", "resume"]


@pytest.mark.parametrize(
    "words",
    [["figures", "absent"], ["view", "absent"], ["train", "absent.toml"], ["export", "absent", "--format", "hf"]],
)
def test_nothing_heavy_is_imported_before_the_arguments_were_checked(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "from arise.cli.main import main; main()", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    assert "arise.cli.app" in loaded
    assert not loaded & {"torch", "transformers", "matplotlib", "pyarrow", "fastapi", "uvicorn"}


@pytest.mark.parametrize(
    ("given", "afterwards"),
    [
        ({}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}),
        ({"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
    ],
)
def test_threads_spin_briefly_unless_the_user_has_set_how_they_wait(
    given: dict[str, str], afterwards: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = dict(given)
    monkeypatch.setattr(os, "environ", environment)
    limit_spinning()
    assert environment == afterwards


def test_the_project_file_of_this_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "arise.toml").write_text("[train]\nseed = 4\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert tomllib.loads(run("config", "--changed").stdout) == {"train": {"seed": 4}}


def test_config_prints_the_paper_as_toml_and_as_json() -> None:
    done = run("config")
    assert done.returncode == 0
    assert tomllib.loads(done.stdout) == Config().model_dump()
    done = run("config", "--json")
    assert json.loads(done.stdout) == Config().model_dump()


def test_config_prints_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("[train]\nseed = 4\n", encoding="utf-8")
    done = run("config", str(path), "--set", "pool.update_every=5", "--changed")
    assert done.returncode == 0
    assert tomllib.loads(done.stdout) == {"train": {"seed": 4}, "pool": {"update_every": 5}}


def test_a_wrong_configuration_ends_with_2_and_says_everything() -> None:
    done = run("config", "--set", "train.iteratons=5", "--set", "train.seed=-1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error[config]  2 problems, nothing was started\n")
    assert "did you mean train.iterations?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_that_is_held_is_refused_before_the_command_line_is_parsed(tmp_path: Path) -> None:
    lock = claim(tmp_path)
    (tmp_path / "config.toml").touch()
    for words in (["resume", str(tmp_path)], ["train", "--no-such-option", f"--run-dir={tmp_path}"]):
        done = run(*words)
        assert done.returncode == 6
        assert f"{tmp_path} is in use by host" in done.stderr
    assert run("resume", str(tmp_path), "--help").returncode == 0
    lock.release()


@pytest.mark.parametrize("there", [True, False])
def test_a_command_line_that_is_wrong_leaves_no_folder(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "new"
    if there:
        folder.mkdir()
    for words in (["--no-such-option"], ["nowhere.toml"], ["--set", "train.iteration=3"]):
        done = run("train", *words, "--run-dir", str(folder))
        assert done.returncode == 2, done.stderr
        assert folder.exists() == there
    claim(folder).release()


@pytest.mark.parametrize(
    ("words", "folder"),
    [
        ("train a.toml --run-dir there", "there"),
        ("train --run-dir=there a.toml --json", "there"),
        ("train a.toml", None),
        ("train a.toml --run-dir", None),
        ("train a.toml --run-dir there --help", None),
        ("resume nowhere", None),
        ("guidance nowhere --base", None),
        ("config a.toml --run-dir there", None),
        ("", None),
    ],
)
def test_the_folder_that_a_command_writes_to(words: str, folder: str | None) -> None:
    assert written_by(words.split()) == (folder and Path(folder))
