"""What a run asks of its sandboxes: limits that are said, recorded and required, and files that no agent sees."""

import asyncio
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from arise.cli.app import app
from arise.compose.sandboxes import open_sandboxes, private_paths, require_limits
from arise.config import Config, HarborTasks
from arise.config.records import SandboxConfig
from arise.errors import AriseError
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.run.store import RunStore
from arise.sandbox import pool
from arise.sandbox.choose import ChosenPool
from arise.sandbox.outside import Prepared
from tests.stored_runs import write_run

MISSING = "no writable control groups with memory and pids"
STRICT = Config(sandbox=SandboxConfig(require_limits=True))


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose control groups cannot be written."""
    monkeypatch.setattr("arise.sandbox.pool.find_cgroups", lambda: None)
    monkeypatch.setattr("arise.compose.sandboxes.find_cgroups", lambda: None)


def opened(config: Config, folder: Path) -> tuple[str, ...]:
    async def body() -> tuple[str, ...]:
        async with open_sandboxes(config, folder) as (sandboxes, _):
            assert isinstance(sandboxes, ChosenPool)
            return sandboxes.notes

    return asyncio.run(body())


def test_a_machine_that_enforces_everything_has_nothing_to_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert opened(STRICT, tmp_path) == ()
    assert caplog.messages == []


@pytest.mark.usefixtures("no_groups")
def test_missing_limits_are_said_on_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notes = opened(Config(), tmp_path)
    assert [line.partition(": ")[2] for line in caplog.messages] == list(notes)
    assert any(MISSING in line for line in caplog.messages)
    assert any("a busy sandbox slows the others down" in line for line in caplog.messages)


@pytest.mark.usefixtures("no_groups")
def test_missing_limits_are_refused_where_they_are_required(tmp_path: Path) -> None:
    with pytest.raises(AriseError, match=MISSING) as refused:
        opened(STRICT, tmp_path)
    assert "systemd-run --user --scope" in str(refused.value)
    run = tmp_path / "run"
    answer = CliRunner().invoke(app, ["train", "--run-dir", str(run), "--set", "sandbox.require_limits=true"])
    assert answer.exit_code == 9
    assert MISSING in answer.output
    assert not (run / "run.db").exists()


def test_a_missing_cap_that_shows_only_in_a_sandbox_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arise.sandbox.launch.prepare", lambda *_: Prepared(watches_capped=False, covered=True))
    require_limits(STRICT)
    assert "inotify" in "".join(opened(Config(), tmp_path))
    with pytest.raises(AriseError, match="inotify"):
        opened(STRICT, tmp_path)


def test_limits_are_recorded_by_session_and_shown_on_health(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    write_run(folder, iterations=1)
    client = TestClient(create_app(Catalogue.of([folder])), base_url="http://127.0.0.1")
    assert "Not recorded." in client.get("/runs/first/health").text
    for missing in ["no <b> filter", MISSING], ["no <b> filter", MISSING], []:
        with closing(RunStore.open(folder)) as store:
            store.note_limits(missing)
    page = client.get("/runs/first/health").text
    assert page.count(MISSING) == 1, "two sessions alike are one line"
    assert "no &lt;b&gt; filter" in page
    assert "all enforced by the kernel <small>from process 4 on" in page
    verified = CliRunner().invoke(app, ["verify", str(folder)])
    assert verified.exit_code == 0, verified.output


def in_a_namespace(script: str) -> "subprocess.CompletedProcess[str]":
    """Runs a script as the root of a user namespace of its own, whose settings are not the machine's."""
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_doctor_fails_where_train_does_and_its_remedy_works() -> None:
    doctor = f"{sys.executable} -m arise doctor"
    refused = in_a_namespace(f"echo 0 > /proc/sys/user/max_user_namespaces; {doctor}")
    assert refused.returncode == 1
    assert "✗ bubblewrap  no sandbox starts: bubblewrap may not make namespaces here" in refused.stdout
    remedy = "sysctl -w user.max_user_namespaces=15000"
    assert f"do: as root: {remedy}\n" in refused.stdout
    set_it = f"echo {remedy.rpartition('=')[2]} > /proc/sys/user/max_user_namespaces"  # as sysctl does
    fixed = in_a_namespace(f"echo 0 > /proc/sys/user/max_user_namespaces; {set_it}; {doctor}")
    assert "✓ bubblewrap  a sandbox starts" in fixed.stdout


@pytest.mark.usefixtures("no_groups")
def test_doctor_says_which_limits_are_missing_and_fails_only_where_they_are_required(tmp_path: Path) -> None:
    lax = CliRunner().invoke(app, ["doctor"])
    assert lax.exit_code == 0, lax.output
    assert f"! limits      {MISSING}" in lax.output
    (tmp_path / "strict.toml").write_text("[sandbox]\nrequire_limits = true\n")
    strict = CliRunner().invoke(app, ["doctor", str(tmp_path / "strict.toml")])
    assert strict.exit_code == 1
    assert f"✗ limits      {MISSING}" in strict.output


def test_a_run_hides_itself_its_sibling_runs_and_its_tasks(tmp_path: Path) -> None:
    runs, mixed = tmp_path / "runs", tmp_path / "mixed"
    for folder in (runs / "first", runs / "second", mixed / "first", mixed / "second", mixed / "tools"):
        folder.mkdir(parents=True)
        if folder.name == "second":
            (folder / "run.db").touch()
    tasks = HarborTasks(train=str(tmp_path / "a"), evaluation=str(tmp_path / "b"))
    assert set(private_paths(Config(), runs / "first")) == {runs / "first", runs}
    found = set(private_paths(Config(tasks=tasks), mixed / "first"))
    assert found == {mixed / "first", mixed / "second", tmp_path / "a", tmp_path / "b"}


def test_every_pool_of_a_run_hides_them(tmp_path: Path) -> None:
    async def body() -> list[set[str]]:
        async with open_sandboxes(Config(), tmp_path / "run") as (sandboxes, verifier):
            assert isinstance(sandboxes, ChosenPool)
            assert isinstance(verifier.pool, ChosenPool)
            return [set(each.layout.hidden) for each in sandboxes.plain_pools]

    (tmp_path / "run").mkdir()
    expected = {str(tmp_path / "run"), str(tmp_path)}
    assert asyncio.run(body()) == [expected, expected]


def test_an_unprivileged_user_is_warned_that_only_memory_can_exceed_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arise.sandbox.pool.os.geteuid", lambda: 1000)
    assert pool.missing_limits(None)[0].partition(": ")[2].startswith("memory of a sandbox")
    monkeypatch.setattr("arise.sandbox.pool.os.geteuid", lambda: 0)
    assert pool.missing_limits(None)[0].partition(": ")[2].startswith("memory and processes of a sandbox")
