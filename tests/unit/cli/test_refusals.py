"""What a person is told when something cannot be had: before anything is tried, with a reason and an exit code."""

from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import require_outcome
from arise.run.folder import claim
from arise.run.store import RunStore
from arise.testing import Action, FakeLLM, Say, Status, in_thread
from tests.builders import an_attempt
from tests.stored_runs import write_run

NOBODY = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stored run with rubrics in its pool."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    write_run(folder, 6)
    return folder


def tried(run: Path) -> list[str]:
    with closing(RunStore.open(run)) as store:
        return [label for (label,) in store.query("SELECT DISTINCT label FROM attempts")]


@pytest.mark.parametrize("command", ["eval", "guidance"])
def test_a_model_without_a_key_is_refused_before_the_first_attempt(
    run: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = CliRunner().invoke(app, [command, str(run), "--model", "gpt-4o-mini"])
    assert done.exit_code == Exit.JUDGE
    assert "error[endpoint]  gpt-4o-mini at https://api.openai.com/v1 cannot be used" in done.output
    assert "do:     export OPENAI_API_KEY=..." in done.output
    assert not (run / "tasks").exists(), "no task was made, no attempt begun"
    assert tried(run) == []


@pytest.mark.parametrize("command", ["eval", "guidance"])
@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "HTTP 401"), (404, "HTTP 404"), (None, f"check that a server runs at {NOBODY}")],
)
def test_an_endpoint_that_refuses_is_reported_before_the_first_attempt(
    run: Path, command: str, status: int | None, said: str
) -> None:
    with in_thread(FakeLLM(lambda _: Status(status or 500))) as fake:
        address = fake.base_url if status else NOBODY
        done = CliRunner().invoke(app, [command, str(run), "--model", "m", "--base-url", address])
    assert done.exit_code == Exit.JUDGE
    assert said in done.output
    assert "Traceback" not in done.output
    assert tried(run) == []


def test_attempts_that_were_all_lost_are_no_score_and_say_why() -> None:
    lost = an_attempt(success=None, fault="policy: unavailable: HTTP 503")
    require_outcome("m", [lost, an_attempt(success=False)])
    with pytest.raises(AriseError, match="infrastructure ended all 2 attempts, most often by: policy: unava") as caught:
        require_outcome("m", [lost, lost])
    assert caught.value.exit_code is Exit.ENGINE


TINY = ["--set", "train.iterations=1", "--set", "model.demonstrations=1"]


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        (["tasks.kind=harbor", "tasks.train=nowhere", "tasks.evaluation=nowhere"], Exit.TASKS, "nowhere"),
        (["tasks.held_out=knitting"], Exit.CONFIG, "unknown task type 'knitting'"),
        (["model.kind=pretrained", "model.name=./nowhere"], Exit.CONFIG, "no such model folder"),
        (["judge.kind=model", "judge.endpoint.model=m"], Exit.JUDGE, "JUDGE_KEY_OF_NOBODY holds no key"),
        (["judge.kind=model", "judge.endpoint.model=m", f"judge.endpoint.base_url={NOBODY}"], Exit.JUDGE, "cannot be"),
        (
            [
                "judge.kind=model",
                "judge.endpoint.model=m",
                "judge.endpoint.base_url=FAKE",
                "reflector.kind=model",
                "reflector.endpoint.model=n",
                f"reflector.endpoint.base_url={NOBODY}",
            ],
            Exit.JUDGE,
            "n at",
        ),
        (
            ["criteria.kind=elicited", "criteria.endpoint.model=reference", f"criteria.endpoint.base_url={NOBODY}"],
            Exit.JUDGE,
            "reference at",
        ),
    ],
)
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("answer", [Say("ok"), pytest.param(Status(429), marks=pytest.mark.slow)])
def test_a_run_that_is_refused_leaves_nothing_behind(
    tmp_path: Path, changes: list[str], code: int, said: str, there: bool, answer: Action
) -> None:
    """A busy judge (429) is waited for before the next endpoint is tried."""
    folder = tmp_path / "runs" / "new"
    if there:
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text("mine")
    with in_thread(FakeLLM(lambda _: answer)) as fake:
        changes = [change.replace("FAKE", fake.base_url) for change in changes]
        if changes[0] == "judge.kind=model":
            changes.append("judge.endpoint.api_key_env=JUDGE_KEY_OF_NOBODY")
        words = [*TINY, *(word for change in changes for word in ("--set", change))]
        done = CliRunner().invoke(app, ["train", "--run-dir", str(folder), *words])
    assert done.exit_code == code, done.output
    assert said in done.output
    assert "Traceback" not in done.output
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert left == (["runs", "runs/new", "runs/new/notes.txt"] if there else [])
    claim(folder).withdraw()


def test_a_folder_that_cannot_be_made_fails_before_any_iteration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["train", "--run-dir", str(tmp_path / "file" / "run")])
    assert done.exit_code == Exit.STORAGE
    assert "no run was started" in done.output
    assert "--run-dir" in done.output
    assert "iteration" not in done.output


def test_a_refusal_prints_no_json_and_has_an_exit_code(run: Path) -> None:
    done = CliRunner().invoke(app, ["eval", str(run), "--model", "m", "--base-url", NOBODY, "--json"])
    assert done.exit_code == Exit.JUDGE
    assert done.stdout == ""
