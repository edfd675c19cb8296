"""Trackers are mirrors: they get every number, and one that raises, hangs or is not installed never stops a run."""

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from arise.compose.registry import open_trackers
from arise.config import Config
from arise.observe import trackers
from arise.observe.trackers import Mirrors


class Recorder:
    def __init__(self) -> None:
        self.logged: list[tuple[int, Mapping[str, float]]] = []
        self.closed = False

    def log(self, iteration: int, values: Mapping[str, float]) -> None:
        self.logged.append((iteration, values))

    def close(self) -> None:
        self.closed = True


class Raising(Recorder):
    def log(self, iteration: int, values: Mapping[str, float]) -> None:  # noqa: ARG002
        raise SystemExit("the service is gone")


class Hanging(Recorder):
    def __init__(self, release: threading.Event) -> None:
        super().__init__()
        self._release = release

    def log(self, iteration: int, values: Mapping[str, float]) -> None:  # noqa: ARG002
        self._release.wait()


def test_every_iteration_reaches_a_tracker_and_it_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    with Mirrors({"recorder": lambda: recorder}) as all_mirrors:
        for k in range(1, 6):
            all_mirrors.log(k, {"pass_rate": k / 10})
    assert recorder.logged == [(k, {"pass_rate": k / 10}) for k in range(1, 6)]
    assert recorder.closed
    assert caplog.messages == []


def test_a_tracker_that_raises_is_dropped_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    with Mirrors({"bad": Raising, "good": lambda: recorder}) as all_mirrors:
        for k in range(5):
            all_mirrors.log(k, {})
            time.sleep(0.01)
    assert caplog.messages == ["tracker bad is dropped, the run continues: the service is gone"]
    assert len(recorder.logged) == 5


def test_a_tracker_that_hangs_costs_no_time_and_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trackers, "CLOSING_SECONDS", 0.2)
    release = threading.Event()
    began = time.monotonic()
    with Mirrors({"slow": lambda: Hanging(release)}) as all_mirrors:
        for k in range(2000):
            all_mirrors.log(k, {})
        assert time.monotonic() - began < 2.0
    assert len(caplog.messages) == 1
    assert "tracker slow is dropped" in caplog.messages[0]
    release.set()


def test_a_tracker_that_hangs_at_the_end_does_not_keep_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trackers, "CLOSING_SECONDS", 0.1)
    release = threading.Event()
    with Mirrors({"slow": lambda: Hanging(release)}) as all_mirrors:
        all_mirrors.log(1, {})
    assert caplog.messages == ["tracker slow is dropped, the run continues: it did not finish in time"]
    release.set()


def test_a_tracker_that_is_not_installed_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    config = Config.model_validate({"trackers": {"use": ["wandb"]}})
    with open_trackers(config, tmp_path) as all_mirrors:
        all_mirrors.log(1, {"pass_rate": 0.5})
    assert len(caplog.messages) == 1
    assert "pip install 'arise-rl[wandb]'" in caplog.messages[0]


def test_nothing_is_imported_or_started_for_trackers_that_are_not_asked_for(tmp_path: Path) -> None:
    before = threading.active_count()
    with open_trackers(Config(), tmp_path) as all_mirrors:
        all_mirrors.log(1, {"pass_rate": 0.5})
        assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_reads_what_was_mirrored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config.model_validate({"trackers": {"use": ["tensorboard"]}})
    with open_trackers(config, tmp_path) as all_mirrors:
        for k in (1, 2):
            all_mirrors.log(k, {"pass_rate": k / 4, "seconds.rollouts": 1.0})
    assert caplog.messages == []
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path / "trackers" / "tensorboard"))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("pass_rate")] == [(1, 0.25), (2, 0.5)]
    assert "seconds.rollouts" in found.Tags()["scalars"]


@pytest.mark.parametrize("name", ["wandb", "trackio", "mlflow"])
def test_a_tracker_that_is_installed_works_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip(name)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("WANDB_SILENT", "true")
    config = Config.model_validate({"trackers": {"use": [name]}})
    with open_trackers(config, tmp_path / "run") as all_mirrors:
        all_mirrors.log(1, {"pass_rate": 0.5})
    assert caplog.messages == []
    assert any(path.is_file() for path in tmp_path.rglob("*"))
