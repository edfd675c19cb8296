import pytest
from pydantic import ValidationError

from arise.config import Config, LossConfig
from arise.config.pool import PoolConfig
from arise.config.sampler import CapabilitySampling, UniformSampling, VadeSampling
from arise.types import LossSpec, OptimSpec


def test_the_default_is_the_papers_arise() -> None:
    config = Config()
    assert isinstance(config.sampler, CapabilitySampling)
    assert (config.train.iterations, config.train.tasks_per_iteration, config.train.group_size) == (150, 32, 8)


def test_specifications_of_the_loss_agree_with_the_configuration() -> None:
    config, loss, optim = Config(), LossSpec(), OptimSpec()
    assert config.sampling.temperature == loss.temperature
    assert config.loss == LossConfig(min_ratio=loss.min_ratio, max_ratio=loss.max_ratio, dual_clip=loss.dual_clip)
    assert (config.optimizer.learning_rate, config.optimizer.warmup_updates) == (optim.learning_rate, 40)
    assert (config.optimizer.beta1, config.optimizer.beta2) == optim.betas
    assert optim.warmup_updates == 40


def test_configurations_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Config().train.iterations = 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"quota_fraction": 0.5}, CapabilitySampling(quota_fraction=0.5)),
        ({"kind": "uniform"}, UniformSampling()),
        ({"kind": "vade", "observed_decay": 0.3}, VadeSampling(observed_decay=0.3)),
    ],
)
def test_the_kind_selects_the_section(values: dict[str, object], expected: object) -> None:
    assert Config.model_validate({"sampler": values}).sampler == expected


@pytest.mark.parametrize("values", [{"activate_at": 0.9}, {"retire_at": 0.3}, {"activate_at": 0.5, "retire_at": 0.4}])
def test_thresholds_are_ordered(values: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=r"activate_at \(0\.\d\) must be below retire_at \(0\.\d\)"):
        PoolConfig.model_validate(values)


def test_ratio_bounds_are_ordered() -> None:
    with pytest.raises(ValidationError, match=r"min_ratio \(5\.0\) must be below max_ratio \(5\.0\)"):
        LossConfig(min_ratio=5.0)


def test_a_nucleus_is_refused_in_training_and_kept_for_evaluation() -> None:
    with pytest.raises(ValidationError, match=r"top_p \(0\.9\) must be 1\.0 in training.*set evaluation\.top_p"):
        Config.model_validate({"sampling": {"top_p": 0.9}})
    assert Config.model_validate({"evaluation": {"top_p": 0.9}}).evaluation.top_p == 0.9


def test_a_configuration_must_be_a_table() -> None:
    with pytest.raises(ValidationError):
        Config.model_validate(3)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"train": {"max_staleness": -1}}, "greater than or equal to 0"),
        ({"train": {"max_staleness": 0.5}}, "valid integer"),
        ({"train": {"max_staleness": 4, "iterations": 4}}, r"max_staleness \(4\) must be below iterations \(4\)"),
        (
            {"train": {"max_staleness": 1}, "guidance": {"kind": "scaffold"}},
            r"train.max_staleness \(1\) must be 0 with guidance.trained_with = false",
        ),
    ],
)
def test_a_staleness_that_cannot_be_kept_is_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Config.model_validate(values)


def test_a_scaffold_that_is_trained_with_may_run_ahead() -> None:
    values = {"train": {"max_staleness": 2}, "guidance": {"kind": "scaffold", "trained_with": True}}
    assert Config.model_validate(values).train.max_staleness == 2
