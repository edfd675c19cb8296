"""Evaluations on the way are scheduled events: the loop pauses for them, and its results stay the same."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from arise.config.evaluation import EvaluationConfig
from arise.config.records import StorageConfig
from arise.run.store import RunStore
from tests.instant import instantly
from tests.unit.test_train import config_of, drive, numbers


@pytest.mark.parametrize(("every", "points"), [(0, []), (3, [3, 6]), (4, [4]), (8, []), (9, [])])
def test_evaluations_on_the_way_are_scheduled_before_the_last_iteration(every: int, points: list[int]) -> None:
    assert list(EvaluationConfig(every=every).points(8)) == points


def final_state(folder: Path) -> tuple[str, str]:
    with closing(RunStore.open(folder)) as store:
        found = store.last_checkpoint()
        assert found is not None
        return json.dumps(found[0], sort_keys=True), (folder / found[1] / "policy.json").read_text()


def test_a_pause_for_a_scheduled_event_changes_nothing_and_saves_the_policy(tmp_path: Path) -> None:
    config = config_of(0).model_copy(update={"storage": StorageConfig(checkpoint_every=4, keep_checkpoints=8)})
    for name, pauses in {"whole": [], "paused": [3, 3, 6]}.items():
        (tmp_path / name).mkdir()
        instantly(drive(tmp_path / name, config, 1.0, judge=1.0, pauses=pauses))
    assert final_state(tmp_path / "paused") == final_state(tmp_path / "whole")
    saved = [sorted(path.name for path in tmp_path.glob(f"{name}/checkpoints/*")) for name in ("whole", "paused")]
    assert saved == [["k00004", "k00008"], ["k00003", "k00004", "k00006", "k00008"]]


def test_a_kill_between_two_scheduled_events_changes_nothing(tmp_path: Path) -> None:
    config = config_of(2)
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    instantly(drive(tmp_path / "whole", config, 3.0, judge=1.0, pauses=[3, 6]))
    instantly(drive(tmp_path / "killed", config, 3.0, judge=1.0, until=10.0, pauses=[3, 6]))
    assert 3 <= len(numbers(tmp_path / "killed", "staleness")) < 6
    instantly(drive(tmp_path / "killed", config, 3.0, judge=1.0, pauses=[6]))
    assert final_state(tmp_path / "killed") == final_state(tmp_path / "whole")
