"""The nine methods of the paper, and variants, as overlays over any base: none touches what all must share."""

from pathlib import Path

import pytest

from arise.config import Config, SkillGuidance
from arise.config.base import LengthAdjustment
from arise.config.file import ConfigError, differences, load_config
from arise.config.sampler import VadeSampling

ROOT = Path(__file__).parents[3]
OVERLAYS = sorted((ROOT / "configs" / "methods").glob("*.toml"))
BASES = sorted((ROOT / "configs").glob("*.toml"))
ABLATIONS = "frozen-rubrics no-adaptive-sampling no-skill-injection vade-sampling outcome-only"
NAMES = f"arise {ABLATIONS} online-rubrics ruscarl vade"
VARIANTS = (
    "all-guided bare-prompt bare-unsolved fading ruscarl-advice same-prompt two-verdicts unguided-rate unsolved watch"
)
CHANGES = {"pool", "guidance", "sampler", "judge", "criteria", "credit", "watch"}


def test_there_are_nine_methods_and_their_variants() -> None:
    assert {path.stem for path in OVERLAYS} == {*NAMES.split(), *VARIANTS.split()}


BARE_PROMPTS = {"bare-prompt", "bare-unsolved", "ruscarl", "ruscarl-advice"}
"""Methods that train with the bare prompt: they need the shell agent, and rollouts of the current weights."""


@pytest.mark.parametrize("base", BASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_a_method_changes_only_the_extension_points(base: Path, overlay: Path) -> None:
    below = load_config(base)
    if overlay.stem in BARE_PROMPTS and (below.agent.kind != "shell" or below.train.max_staleness):
        with pytest.raises(ConfigError, match=r"guidance\.trained_with = false"):
            load_config([base, overlay])
        return
    changed = differences(load_config([base, overlay]), load_config(base))
    assert set(changed) <= CHANGES
    unchanged = load_config(base).guidance == Config().guidance and overlay.stem == "all-guided"
    assert bool(changed) == (overlay.stem != "arise" and not unchanged)


def test_every_method_has_its_row_in_the_docs() -> None:
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert [name for name in f"{NAMES} {VARIANTS}".split() if f"`{name}`" not in page] == []


def written(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.toml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_later_files_win_key_by_key(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "[train]\nseed = 1\niterations = 3\n", "[train]\nseed = 2\n"))
    assert (config.train.seed, config.train.iterations) == (2, 3)


@pytest.mark.parametrize("below", ["[sampler]\nquota_fraction = 0.5\n", "[sampler]\nkind = 'capability'\n", ""])
def test_a_section_of_another_kind_replaces_the_one_below(tmp_path: Path, below: str) -> None:
    config = load_config(written(tmp_path, below, "[sampler]\nkind = 'vade'\nobserved_decay = 0.3\n"))
    assert config.sampler.kind == "vade"


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_every_method_adjusts_for_length_as_its_base_does(tmp_path: Path, overlay: Path) -> None:
    (base,) = written(tmp_path, "[credit]\nlength_strength = 0.2\nlength_threshold = 32\nrubric_weight = 0.3\n")
    credit = load_config([base, overlay]).credit
    assert isinstance(credit, LengthAdjustment)
    assert (credit.length_strength, credit.length_threshold) == (0.2, 32)


def test_without_a_kind_a_section_changes_the_kind_below(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, "[sampler]\nkind = 'vade'\n", "[sampler]\nobserved_decay = 0.3\n"))
    assert config.sampler == VadeSampling(observed_decay=0.3)


def test_a_problem_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"train\.iteratons.*\(1\.toml line 2\)"):
        load_config(written(tmp_path, "[train]\nseed = 1\n", "[train]\niteratons = 2\n"))


def test_the_papers_values_stay() -> None:
    config = Config()
    assert config.guidance == SkillGuidance(share=1.0)
    assert config.watch.share == 0.0
    assert (config.pool.evolves, config.pool.retires, config.pool.lifecycle) == (True, True, "")
