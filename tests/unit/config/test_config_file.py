"""Files and overrides: everything wrong at once, with line, value and suggestion."""

from pathlib import Path

import pytest

from arise.config import Config
from arise.config.file import ConfigError, differences, known_keys, load_config
from arise.config.sampler import UniformSampling, VadeSampling


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path | None, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, overrides)
    return caught.value.problems


def test_without_a_file_the_defaults_are_used() -> None:
    assert load_config() == Config()


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "[train]\niterations = 20\n[sampler]\nkind = 'uniform'\n"))
    assert config.train.iterations == 20
    assert config.train.group_size == 8
    assert config.sampler == UniformSampling()


def test_overrides_win_and_are_read_as_toml(tmp_path: Path) -> None:
    path = written(tmp_path, "[train]\niterations = 20\n")
    overrides = [
        "train.iterations=30",
        "sampler.kind=vade",
        "sampler.observed_decay = 0.5",
        'optimizer.precision="fp32"',
    ]
    config = load_config(path, overrides)
    assert config.train.iterations == 30
    assert config.sampler == VadeSampling(observed_decay=0.5)
    assert config.optimizer.precision == "fp32"


def test_every_problem_at_once_with_lines_and_suggestions(tmp_path: Path) -> None:
    text = "\n".join(
        [
            "[train]",
            "iteratons = 5",
            "group_size = 1",
            "",
            "[loss]",
            "activate_at = 0.2",
            "[ sampler ]",
            "kind = 'uniform'",
            "min_discovery = 0.2",
            "[trian]",
            "[credit]",
            "rubric_weight = 'much'",
            "zzz = 1",
        ]
    )
    assert set(problems_of(written(tmp_path, text), "train.seed=-1", "nonsense")) == {
        "--set nonsense: expected section.key=value, e.g. --set train.iterations=20",
        "train.iteratons: unknown key (line 2) — did you mean train.iterations?",
        "train.group_size = 1: Input should be greater than or equal to 2 (line 3)",
        "train.seed = -1: Input should be greater than or equal to 0 (--set)",
        "loss.activate_at: unknown key (line 6) — did you mean pool.activate_at?",
        "sampler.min_discovery: not a key of kind 'uniform' (line 9) — it belongs to 'capability'",
        "trian: unknown key (line 10) — did you mean train?",
        "credit.rubric_weight = 'much': Input should be a valid number (line 12)",
        "credit.zzz: unknown key (line 13)",
    }


def test_a_key_of_several_kinds(tmp_path: Path) -> None:
    path = written(tmp_path, "[sampler]\nkind = 'uniform'\nobserved_decay = 0.2\n")
    assert problems_of(path) == (
        "sampler.observed_decay: not a key of kind 'uniform' (line 3) — it belongs to 'capability' and 'vade'",
    )


def test_an_unknown_kind() -> None:
    (problem,) = problems_of(None, "sampler.kind=thompson")
    assert problem.startswith(
        "sampler: Input tag 'thompson' found using 'kind' does not match any of the expected tags"
    )
    assert "'capability', 'uniform', 'vade'" in problem


def test_values_inside_a_variant(tmp_path: Path) -> None:
    path = written(tmp_path, "[sampler]\nkind = 'vade'\nobserved_decay = 2\n")
    assert problems_of(path) == ("sampler.observed_decay = 2: Input should be less than or equal to 1 (line 3)",)


def test_thresholds_in_the_wrong_order_name_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, "[pool]\nactivate_at = 0.95\n")
    assert problems_of(path) == ("pool: activate_at (0.95) must be below retire_at (0.9) (line 1)",)


@pytest.mark.parametrize("override", ["train", "=3", ".iterations=3", "train.=3", "train..x=3"])
def test_overrides_have_a_form(override: str) -> None:
    assert problems_of(None, override) == (
        f"--set {override}: expected section.key=value, e.g. --set train.iterations=20",
    )


def test_an_override_of_a_key_below_a_value_is_refused(tmp_path: Path) -> None:
    problems = problems_of(written(tmp_path, "[train]\nseed = 3\n"), "train.seed.x=1")
    assert problems == ("--set train.seed.x=1: seed is a value, not a section",)


def test_nan_is_not_a_number() -> None:
    assert problems_of(None, "credit.rubric_weight=nan") == (
        "credit.rubric_weight = nan: Input should be a finite number (--set)",
    )


def test_the_message_states_count_and_source(tmp_path: Path) -> None:
    path = written(tmp_path, "[train]\nseed = -3\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path, ["train.iterations=0"])
    first, *_, last = str(caught.value).splitlines()
    assert first == "error[config]  2 problems, nothing was started"
    assert last == f"  source: {path} and --set"
    with pytest.raises(ConfigError, match=r"^error\[config\]  1 problem, nothing was started\n"):
        load_config(None, ["train.iterations=0"])


def test_unreadable_files_are_one_problem(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "none.toml") == ("cannot read the file: No such file or directory",)
    (problem,) = problems_of(written(tmp_path, "[train\n"))
    assert problem.startswith("not valid TOML: ")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert problems_of(binary) == ("the file is not UTF-8 text",)


def test_differences_from_the_paper() -> None:
    assert differences(Config()) == {}
    config = load_config(None, ["train.seed=3", "sampler.quota_fraction=0.5"])
    assert differences(config) == {
        "train": {"seed": 3},
        "sampler": {"kind": "capability", "quota_fraction": 0.5},
    }
    assert differences(load_config(None, ["sampler.kind=uniform"])) == {"sampler": {"kind": "uniform"}}
    assert differences(config, config) == {}


def test_known_keys_reach_into_every_variant() -> None:
    keys = set(known_keys())
    assert {"train", "train.iterations", "sampler.kind", "sampler.min_discovery", "loss.dual_clip"} <= keys
    assert not any(key.startswith("sampler.uniform") for key in keys)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[train]\niterations = "8"\n',
            "train.iterations = '8': Input should be a valid integer (line 2) — write 8 without quotes",
        ),
        (
            '[credit]\nrubric_weight = "0.3"\n',
            "credit.rubric_weight = '0.3': Input should be a valid number (line 2) — write 0.3 without quotes",
        ),
        (
            '[pool]\nretires = "false"\n',
            "pool.retires = 'false': Input should be a valid boolean (line 2) — write false without quotes",
        ),
        ("[pool]\nretires = 0\n", "pool.retires = 0: Input should be a valid boolean (line 2)"),
        ("[train]\nseed = true\n", "train.seed = True: Input should be a valid integer (line 2)"),
        ("[train]\ngroup_size = 8.0\n", "train.group_size = 8.0: Input should be a valid integer (line 2)"),
        ("[model]\nkind = 'pretrained'\nname = 5\n", "model.name = 5: Input should be a valid string (line 3)"),
    ],
)
def test_a_value_of_another_type_is_not_converted(tmp_path: Path, text: str, problem: str) -> None:
    assert problems_of(written(tmp_path, text)) == (problem,)


def test_a_whole_number_is_fine_where_a_fraction_is_asked_for(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, "[loss]\ndual_clip = 4\n")).loss.dual_clip == 4.0


def test_sections_of_older_files_mean_the_built_in_kinds(tmp_path: Path) -> None:
    text = (
        "[agent]\nmax_turns = 3\n[policy]\ndevice = 'cpu'\n[sandbox]\nrequire_limits = true\n[trackers]\nuse=['wandb']"
    )
    (tmp_path / "old.toml").write_text(text)
    config = load_config(tmp_path / "old.toml")
    assert (config.agent.kind, config.policy.kind, config.sandbox.kind) == ("shell", "embedded", "auto")
    assert (config.agent.max_turns, config.trackers.use) == (3, ["wandb"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sampler]\nkind = 'import'\n", "sampler.path: Field required"),
        ("[sampler]\nkind = 'import'\npath = 'a.b'\n", "sampler.path = 'a.b': expected \"package.module:Name\""),
        ("[credit]\nkind = 'import'\npath = 'a:B'\nrubric_weight = 1.0\n", "not a key of kind 'import'"),
        ("[trackers]\nuse = ['wanbd']\n", "trackers.use.0 = 'wanbd': Input should be 'tensorboard'"),
        ("[trackers]\nuse = [{path = 'a'}]\n", "trackers.use.0.path = 'a': expected"),
    ],
)
def test_imported_parts_need_a_complete_path(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "mine.toml")
    assert problem in str(caught.value)


def test_an_imported_credit_rule_replaces_the_length_adjustment_of_the_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("[credit]\nlength_threshold = 32\n")
    (tmp_path / "mine.toml").write_text("[credit]\nkind = 'import'\npath = 'a:B'\n")
    assert load_config([tmp_path / "base.toml", tmp_path / "mine.toml"]).credit.kind == "import"
