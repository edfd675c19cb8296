"""golden.md section 12: linear warm-up, then constant."""

import pytest

from arise.config import OptimizerConfig
from arise.method.schedule import learning_rate


@pytest.mark.parametrize(
    ("update", "rate"), [(0, 5e-8), (19, 1e-6), (38, 1.95e-6), (39, 2e-6), (40, 2e-6), (149, 2e-6)]
)
def test_warm_up(update: int, rate: float) -> None:
    paper = OptimizerConfig()
    assert learning_rate(update, paper.learning_rate, paper.warmup_updates) == pytest.approx(rate, rel=1e-12)
