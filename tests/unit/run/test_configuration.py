"""The configuration in a run's record: an edit of config.toml is listed, asked for by name, and kept beside the old."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.config.file import load_config
from arise.errors import AriseError, Exit
from arise.run.configuration import changes, record, recorded, run_config
from arise.run.store import RunStore
from arise.run.verify import verify
from tests.stored_runs import CONFIG, write_run

FASTER = CONFIG + "[optimizer]\nlearning_rate = 0.5\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write_run(folder, 2)
    with closing(RunStore.open(folder)) as store:
        record(load_config(folder / "config.toml"), store, store.note)
    return folder


def problems(folder: Path) -> dict[str, tuple[str, ...]]:
    return {check.name: check.problems for check in verify(folder) if not check.passed}


def test_a_run_as_it_was_made_passes(run: Path) -> None:
    assert problems(run) == {}
    with closing(RunStore.open(run)) as store:
        config, edited = run_config(run, store)
    assert edited == []
    assert config == load_config(run / "config.toml")


def test_comments_and_order_are_no_edit(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text("# a note to myself\n" + text)
    assert problems(run) == {}


def test_an_edit_is_reported_and_refused_until_it_is_named(run: Path) -> None:
    (run / "config.toml").write_text(FASTER.replace("tasks_per_iteration = 2", "tasks_per_iteration = 3"))
    assert problems(run)["configuration"] == (
        "optimizer.learning_rate: 2e-06 in the record, 0.5 in config.toml",
        "train.tasks_per_iteration: 2 in the record, 3 in config.toml",
    )
    done = CliRunner().invoke(app, ["resume", str(run), "--change", "optimizer.learning_rate"])
    assert done.exit_code == Exit.CONFIG
    assert "train.tasks_per_iteration: 2 in the record, 3 in config.toml" in done.output
    assert f"arise resume {run} --change train.tasks_per_iteration" in done.output
    with closing(RunStore.open(run)) as store:
        _, edited = run_config(run, store, ["train", "optimizer.learning_rate"])
        assert [change.field for change in edited] == ["optimizer.learning_rate", "train.tasks_per_iteration"]
        record(load_config(run / "config.toml"), store, store.note)
        kept = recorded(store)
    assert [(entry.iteration, entry.config.optimizer.learning_rate) for entry in kept] == [(2, 2e-6), (2, 0.5)]
    assert problems(run) == {}


@pytest.mark.parametrize("command", ["eval", "guidance", "retention"])
def test_an_edited_run_is_not_measured_either(run: Path, command: str) -> None:
    (run / "config.toml").write_text(FASTER)
    done = CliRunner().invoke(app, [command, str(run)])
    assert done.exit_code == Exit.CONFIG
    assert "optimizer.learning_rate" in done.output


def test_what_was_not_edited_cannot_be_allowed(run: Path) -> None:
    done = CliRunner().invoke(app, ["resume", str(run), "--change", "train.seed"])
    assert done.exit_code == Exit.CONFIG
    assert "--change train.seed" in done.output


@pytest.mark.parametrize(
    "harmless",
    ["[trackers]\nproject = 'x'\n", "[budget]\nmax_usd = 3\n", "[storage]\nkeep_every = 5\n"],
)
def test_edits_that_cannot_change_learning_are_accepted(run: Path, harmless: str) -> None:
    (run / "config.toml").write_text(CONFIG + harmless)
    assert len(problems(run)["configuration"]) == 1, "it is still an edit that the record does not know"
    with closing(RunStore.open(run)) as store:
        config, edited = run_config(run, store)
        assert all(change.harmless for change in edited)
        record(config, store, store.note)
    assert problems(run) == {}


def test_a_run_from_before_the_record_opens_and_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    write_run(folder, 2)
    (folder / "config.toml").write_text(FASTER)
    (check,) = [check for check in verify(folder) if check.name == "configuration"]
    assert check.passed
    assert check.said.startswith("no record of config.toml exists")
    with closing(RunStore.open(folder)) as store:
        assert run_config(folder, store)[0].optimizer.learning_rate == 0.5


def test_the_record_itself_is_sealed(run: Path) -> None:
    with closing(sqlite3.connect(run / "run.db")) as db:
        db.execute("UPDATE meta SET value = replace(value, '2e-06', '0.5') WHERE key = 'config 0'")
        db.commit()
    (run / "config.toml").write_text(FASTER)
    assert set(problems(run)) == {"costs"}


def test_a_record_that_cannot_be_read_is_one_message(run: Path) -> None:
    with closing(RunStore.open(run)) as store:
        store.note({"config 1": "{"})
        with pytest.raises(AriseError, match="the recorded configuration cannot be read"):
            recorded(store)
    assert "configuration" in problems(run)


def test_another_kind_of_a_section_lists_its_fields() -> None:
    fields = [change.field for change in changes(load_config(), load_config(None, ["sampler.kind=uniform"]))]
    assert fields == ["sampler.kind", *(f"sampler.{name}" for name in ("min_discovery", "observed_decay",
                      "quota_fraction", "unobserved_decay"))]  # fmt: skip
