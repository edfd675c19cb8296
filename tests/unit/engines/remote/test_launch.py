"""Processes that another program starts, as `srun` does on other machines, and servers for them."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.config import Config
from arise.engines.remote.trainer import TrainerGroup, TrainerLost, TrainerSpec

WORKER = """
import os, sys
from arise.engines.remote.workers.loop import serve

class Backend:
    def facts(self):
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR")
        return {name: os.environ[name] for name in names} | {"arguments": sys.argv[1:], "share": 0}

serve(lambda options: Backend())
"""
SRUN = """#!/bin/sh
test "$1" = "--ntasks=2" || exit 3
shift
for n in 0 1; do SLURM_PROCID=$n SLURM_LOCALID=$n "$@" & done
wait
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter that runs the worker above in place of the one it is asked for."""
    (tmp_path / "worker.py").write_text(WORKER)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "worker.py"} "$@"\n')
    path.chmod(0o755)
    return path


def launcher(tmp_path: Path, script: str) -> str:
    path = tmp_path / "srun"
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


def test_processes_numbered_by_slurm_connect_in_order(tmp_path: Path, python: Path) -> None:
    launch = (launcher(tmp_path, SRUN), "--ntasks=2")
    spec = TrainerSpec("areal", python, "model", processes=2, launch=launch, host="127.0.0.1", start_seconds=60.0)
    group = TrainerGroup(spec, tmp_path / "logs").start()
    try:
        assert len(set(group.pids)) == 2
        assert group.facts["RANK"] == "0"
        assert group.facts["WORLD_SIZE"] == "2"
        assert group.facts["arguments"][-1] == "areal"
    finally:
        group.close()


def test_a_launcher_that_does_not_number_its_processes_is_named(tmp_path: Path, python: Path) -> None:
    launch = (launcher(tmp_path, '#!/bin/sh\nexec env -u RANK "$@"\n'),)
    spec = TrainerSpec("areal", python, "model", launch=launch, start_seconds=60.0)
    with pytest.raises(TrainerLost, match="neither RANK nor SLURM_PROCID"):
        TrainerGroup(spec, tmp_path / "logs").start()


def test_a_launch_needs_the_name_of_this_machine() -> None:
    with pytest.raises(ValueError, match="launch and host go together"):
        Config.model_validate({"policy": {"kind": "areal", "launch": ["srun"]}})


def test_lists_of_a_file_are_accepted() -> None:
    policy = {"kind": "verl", "sampler": {"addresses": ["http://node1:8000"], "arguments": ["--seed", "1"]}}
    loaded = Config.model_validate({"policy": policy}).policy
    assert loaded.sampler.addresses == ("http://node1:8000",)  # type: ignore[union-attr]


def test_a_server_needs_a_configuration_that_has_one(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("")
    done = CliRunner().invoke(app, ["engines", "serve", str(tmp_path / "my.toml")])
    assert done.exit_code == 2
    assert "no sampling server is configured" in done.output
