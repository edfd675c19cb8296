"""A comparison is planned whole before anything runs, and refused where it would not be fair."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import tomli_w

from arise.config.file import ConfigError, load_config
from arise.errors import AriseError
from arise.report.comparison.plan import (
    METHODS,
    Comparison,
    budget_lines,
    parse_methods,
    parse_seeds,
    plan,
    read_plan,
    write_plan,
)

ROOT = Path(__file__).parents[4]
BASE = ROOT / "configs" / "embedded.toml"


def planned(
    folder: Path, methods: Sequence[str] = METHODS, overrides: Sequence[str] = (), base: Path = BASE
) -> Comparison:
    return plan([base], methods, (0, 1), overrides, folder)


def test_every_method_of_the_paper_can_be_compared(tmp_path: Path) -> None:
    found = planned(tmp_path)
    assert len(found.members) == 18
    assert {(m.method, m.seed) for m in found.members} == {(method, seed) for method in METHODS for seed in (0, 1)}
    assert all(member.config.train.seed == member.seed for member in found.members)
    assert not tmp_path.joinpath("runs").exists()


def test_budgets_are_the_same_and_reported(tmp_path: Path) -> None:
    found = planned(tmp_path, overrides=["train.iterations=40"])
    assert "40 iterations x 8 tasks x 8 rollouts = 2560 rollouts a run" in "\n".join(budget_lines(found))
    assert {member.config.train.iterations for member in found.members} == {40}


def test_a_setting_that_one_method_lacks_still_reaches_the_others(tmp_path: Path) -> None:
    found = planned(tmp_path, overrides=["judge.flip_rate=0.05"])
    rates = {m.method: getattr(m.config.judge, "flip_rate", None) for m in found.members}
    assert rates["arise"] == rates["ruscarl"] == 0.05
    assert rates["outcome-only"] is None


def test_a_base_of_several_files_is_merged_from_left_to_right(tmp_path: Path) -> None:
    sparse = ROOT / "configs" / "worlds" / "sparse.toml"
    found = plan([BASE, sparse], ["arise", "outcome-only"], (0,), ["tasks.depth=2"], tmp_path)
    config = found.members[0].config
    assert (config.train.iterations, config.agent.max_turns, config.tasks.model_dump()["depth"]) == (50, 16, 2)
    write_plan(found, {})
    assert read_plan(tmp_path)["bases"] == [str(BASE), str(sparse)]


def test_a_learning_curve_is_planned_unless_the_configuration_has_one(tmp_path: Path) -> None:
    found = planned(tmp_path, overrides=["train.iterations=40"]).members[0].config
    assert (found.evaluation.every, found.storage.keep_every) == (5, 5)
    found = planned(tmp_path, overrides=["evaluation.every=7"]).members[0].config
    assert (found.evaluation.every, found.storage.keep_every) == (7, 7)


def test_methods_of_a_lifecycle_read_that_of_their_seed(tmp_path: Path) -> None:
    found = planned(tmp_path)
    for method in ("frozen-rubrics", "ruscarl"):
        member = found.member(method, 1)
        assert member is not None
        assert member.config.pool.lifecycle == str(tmp_path / "runs/arise/seed-1/lifecycle.json")
    arise = found.member("arise", 1)
    assert arise is not None
    assert arise.config.pool.lifecycle == ""


def test_a_lifecycle_without_arise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AriseError, match="add arise to --methods"):
        planned(tmp_path, ["frozen-rubrics", "vade"])


@pytest.mark.parametrize(
    ("overlay", "key"),
    [
        ({"optimizer": {"learning_rate": 1e-2}}, "optimizer.learning_rate"),
        ({"train": {"group_size": 16}}, "train.group_size"),
        ({"tasks": {"difficulty": "easy"}}, "tasks.difficulty"),
        ({"model": {"hidden": 64}}, "model.hidden"),
        ({"evaluation": {"attempts": 9}}, "evaluation.attempts"),
        ({"judge": {"flip_rate": 0.2}}, "judge.flip_rate"),
        ({"credit": {"length_strength": 0.1}}, "credit.length_strength"),
        ({"pool": {"update_every": 2}}, "pool.update_every"),
        ({"evidence": {"window": 8}}, "evidence.window"),
    ],
)
def test_another_budget_is_refused_by_name(tmp_path: Path, overlay: dict[str, dict[str, object]], key: str) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "base.toml").write_text(BASE.read_text())
    (tmp_path / "methods" / "arise.toml").write_text("")
    (tmp_path / "methods" / "mine.toml").write_text(tomli_w.dumps(overlay))
    with pytest.raises(ConfigError, match=f"{key}: mine differs from arise"):
        planned(tmp_path / "out", ["arise", "mine"], base=tmp_path / "base.toml")


def test_two_methods_are_compared_in_either_order(tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "base.toml").write_text(BASE.read_text())
    overlays: dict[str, dict[str, dict[str, object]]] = {
        "none": {"judge": {"kind": "none"}},
        "arise": {},
        "mine": {"judge": {"flip_rate": 0.2}},
    }
    for name, overlay in overlays.items():
        (tmp_path / "methods" / f"{name}.toml").write_text(tomli_w.dumps(overlay))
    with pytest.raises(ConfigError, match=r"judge\.flip_rate: mine differs from arise"):
        planned(tmp_path / "out", list(overlays), base=tmp_path / "base.toml")


@pytest.mark.parametrize("page", ["{}", "[]", "null", '{"base": 1, "methods": [], "seeds": []}', "not json"])
def test_a_page_that_is_no_plan_is_refused(tmp_path: Path, page: str) -> None:
    (tmp_path / "comparison.json").write_text(page)
    with pytest.raises(AriseError, match="holds no comparison"):
        read_plan(tmp_path)


def test_a_run_that_was_started_otherwise_is_not_mixed_in(tmp_path: Path) -> None:
    found = planned(tmp_path, ["arise"])
    place = found.members[0].folder
    place.mkdir(parents=True)
    (place / "config.toml").write_text(tomli_w.dumps(found.members[0].config.model_dump(exclude_none=True)))
    planned(tmp_path, ["arise"])
    with pytest.raises(ConfigError, match=r"agent.max_turns: .* was started with another value"):
        planned(tmp_path, ["arise"], ["agent.max_turns=5"])


def test_an_unknown_method_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(AriseError, match=r"no method 'arize'[\s\S]*choose among arise, frozen-rubrics"):
        planned(tmp_path, ["arize"])


def test_seeds_and_methods_as_people_write_them() -> None:
    assert parse_seeds("0-2, 7") == (0, 1, 2, 7)
    assert parse_methods("all") == METHODS
    assert parse_methods("vade, arise") == ("vade", "arise")
    for wrong in ("", "a", "1,1", "3-1", "-1"):
        with pytest.raises(AriseError, match="--seeds"):
            parse_seeds(wrong)
    with pytest.raises(AriseError, match="--methods"):
        parse_methods("vade,vade")


def test_the_plan_on_disk_starts_each_run_by_hand(tmp_path: Path) -> None:
    found = planned(tmp_path, ["arise", "vade"], ["train.iterations=9"])
    write_plan(found, {"command": "arise compare"})
    assert read_plan(tmp_path)["overrides"] == ["train.iterations=9"]
    for member in found.members:
        assert load_config(found.config_file(member)) == member.config
    by_hand = load_config([tmp_path / "base.toml", ROOT / "configs/methods/vade.toml"], ["train.seed=1"])
    vade = found.member("vade", 1)
    assert vade is not None
    assert by_hand == vade.config
