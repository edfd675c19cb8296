"""A task whose Dockerfile installs pandas and jq: checked and evaluated; refused where no engine is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.errors import Exit
from arise.run.reader import RunReader
from arise.testing import FakeLLM, always, in_thread
from tests.containers.base import NAME
from tests.e2e.own_model import SETTINGS
from tests.e2e.runs import call_afresh
from tests.stored_runs import write_run
from tests.task_folders import write_task
from tests.tool_models import write_tool_model

DOCKERFILE = f"""FROM {NAME}
RUN apt-get update && apt-get install -y --no-install-recommends jq python3 python3-pip
COPY host.crt /opt/host.crt
RUN pip install --cert /opt/host.crt --break-system-packages pandas
WORKDIR /app
COPY data.json /app/
"""
SOLVE = "jq -c . data.json | python3 -c 'import sys, pandas; print(pandas.read_json(sys.stdin).v.sum())' > answer.txt"
TEST = """python3 -c 'import pandas' && [ "$(cat /app/answer.txt)" = 42 ]
echo $((! $?)) > /logs/verifier/reward.txt
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def task(folder: Path, instruction: str, test: str = TEST) -> Path:
    made = write_task(folder, test=test, solve=SOLVE + "\n")
    (made / "instruction.md").write_text(instruction)
    (made / "environment/Dockerfile").write_text(DOCKERFILE)
    (made / "environment/data.csv").unlink()
    # The certificates of this machine, which the base image's own package replaces.
    (made / "environment/host.crt").write_bytes(Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
    (made / "environment/data.json").write_text('[{"v": 40}, {"v": 2}]')
    text = (made / "task.toml").read_text() + "[environment]\nmemory_mb = 1024\nstorage_mb = 512\n"
    (made / "task.toml").write_text(text)
    return made


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    task(tmp_path / "train" / "sum", "Sum the column v of data.json into answer.txt.")
    task(
        tmp_path / "train" / "total",
        "Write what the values of data.json add up to, into a file answer.txt.",
        f"# 2\n{TEST}",
    )
    task(
        tmp_path / "held-out" / "other",
        "How much is the whole of v? Use pandas and jq; reply in answer.txt.",
        f"# 3\n{TEST}",
    )
    return tmp_path


@pytest.fixture
def endpoint() -> Iterator[str]:
    with in_thread(FakeLLM(always(f"$ {SOLVE}"))) as fake:
        yield fake.base_url


def test_it_is_sound_and_evaluates(corpus: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = CliRunner().invoke(app, ["tasks", "check", str(corpus / "held-out")])
    assert checked.stdout.endswith("1 of 1 tasks are sound\n"), checked.output
    assert "sandbox: overlay, because its Dockerfile says" in checked.stderr
    write_run(corpus / "run", 2)
    monkeypatch.setenv("FAKE_KEY", "k")
    words = ["eval", str(corpus / "run"), "--model", "m", "--base-url", endpoint, "--api-key-env", "FAKE_KEY"]
    words += ["--price", "0"]
    done = CliRunner().invoke(app, [*words, "--suite", str(corpus / "held-out")])
    assert "100.0 % of 3 attempts" in done.stdout, done.output
    assert "infrastructure faults: 0" in done.stdout


def test_without_an_engine_it_is_refused_by_name_with_the_remedy(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arise.sandbox.choose.find_program", lambda _=None: None)
    done = CliRunner().invoke(app, ["tasks", "check", str(corpus / "held-out")])
    assert done.exit_code == Exit.TASKS
    assert "other/environment/Dockerfile: is not built" in done.stdout
    assert "apt-get install --no-install-recommends podman" in done.stdout


@pytest.mark.timeout(1800)
def test_it_trains_in_its_image(tmp_path: Path) -> None:
    """The small tool model knows how to write 42; the tests also need pandas and jq, which only the image has."""
    model = write_tool_model(tmp_path / "model")
    for name in ("train/one", "train/two", "eval/three"):
        task(tmp_path / name, "Write 42 to answer.txt.\n", f"# {name}\njq --version && {TEST}")
    places = (f"model.name={model}", f"tasks.train={tmp_path / 'train'}", f"tasks.evaluation={tmp_path / 'eval'}")
    words = [part for change in (*SETTINGS, *places) for part in ("--set", change)]
    done = call_afresh(tmp_path / "cache", "train", "--run-dir", str(tmp_path / "run"), *words)
    assert done.returncode == 0, done.stderr
    with RunReader.open(tmp_path / "run") as reader:
        updates = [iteration.metrics["skipped"] for iteration in reader.iterations()]
        rollouts = reader.query("SELECT fault, reward FROM rollouts")
    assert updates == [0.0, 0.0]
    assert {fault for fault, _ in rollouts} == {""}
    assert {reward for _, reward in rollouts} == {0.0, 1.0}
