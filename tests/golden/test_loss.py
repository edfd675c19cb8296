"""golden.md section 4: ratio filter, dual clip, and the global denominator."""

import numpy as np
import pytest

from arise.method.loss import PolicyLoss, policy_loss
from tests.builders import close

GENERATED = [1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1]
RATIO = [1.0, 1.2, 1.0, 4.0, 0.4, 0.9, 3.5, 2.9, 6.0, 3.5, 1.1]
ADVANTAGE = [1.5] * 5 + [-0.8] * 5 + [0.0]
KEPT = [1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1]
GRADIENT = [-1.5 / 9, -0.2, 0, -6 / 9, 0, 0.08, 0, 0.257777777777777778, 0, 0, 0]
LOSS = -0.428888888888888889
pytestmark = pytest.mark.filterwarnings("error")


def of_tokens(part: slice = slice(None), token_count: int | None = None) -> PolicyLoss:
    logprob = np.log(RATIO)[part]
    advantage, generated = np.array(ADVANTAGE)[part], np.array(GENERATED)[part]
    return policy_loss(logprob, np.zeros_like(logprob), advantage, generated, token_count=token_count)


def test_loss_mask_and_gradient() -> None:
    loss = of_tokens()
    assert loss.value == pytest.approx(LOSS, rel=1e-12)
    assert loss.kept_U.tolist() == [bool(kept) for kept in KEPT]
    assert loss.kept_tokens == 7
    assert loss.dual_clipped_tokens == 1
    close(loss.gradient_U, GRADIENT)


def test_the_normaliser_is_not_the_kept_tokens() -> None:
    assert abs(of_tokens().value - -0.551428571428571429) > 0.1


def test_out_of_range_tokens_are_dropped_not_clamped() -> None:
    clamped = np.clip(RATIO, 0.5, 5.0)
    terms = np.minimum(-clamped * ADVANTAGE, 3.0 * np.abs(ADVANTAGE)) * GENERATED
    assert abs(of_tokens().value - terms.sum() / 9) > 0.1


def test_dual_clip_holds_for_negative_advantages_only() -> None:
    gradient_U = of_tokens().gradient_U
    assert gradient_U[6] == 0.0
    assert gradient_U[3] == pytest.approx(-0.666666666666666667)


@pytest.mark.parametrize("ratio", [0.5, 5.0])
def test_both_bounds_are_strict(ratio: float) -> None:
    # exp(log(ratio) - 0) may round, so the bound itself is set to the ratio that the function sees.
    seen = float(np.exp(np.log(ratio)))
    bounds = {"min_ratio": seen, "max_ratio": 5.5} if ratio < 1 else {"min_ratio": 0.4, "max_ratio": seen}
    loss = policy_loss([np.log(ratio)], [0.0], [1.0], [True], **bounds)  # type: ignore[arg-type]
    assert loss.kept_U.tolist() == [False]
    assert loss.value == 0.0


def test_a_batch_without_kept_tokens_has_no_gradient() -> None:
    loss = policy_loss(np.log([6.0, 0.1]), [0.0, 0.0], [1.0, -1.0], [1, 1])
    assert loss.value == 0.0
    assert not loss.gradient_U.any()
    assert loss.kept_tokens == 0


@pytest.mark.parametrize("token_count", [None, 0])
def test_a_batch_without_generated_tokens_is_zero(token_count: int | None) -> None:
    loss = policy_loss([0.0], [0.0], [1.0], [0], token_count=token_count)
    assert loss.value == 0.0
    assert loss.gradient_U.tolist() == [0.0]


def test_workers_divide_by_the_global_count() -> None:
    first, second = of_tokens(slice(0, 5), 9), of_tokens(slice(5, 11), 9)
    assert first.value == pytest.approx(-9.3 / 9, rel=1e-12)
    assert second.value == pytest.approx(5.44 / 9, rel=1e-12)
    assert first.value + second.value == pytest.approx(LOSS, rel=1e-12)
    close(np.concatenate([first.gradient_U, second.gradient_U]), GRADIENT)


def test_averaging_worker_means_would_be_wrong() -> None:
    first, second = of_tokens(slice(0, 5)), of_tokens(slice(5, 11))
    close((first.value, second.value), (-2.325, 1.088))
    assert (first.value + second.value) / 2 == pytest.approx(-0.6185)
    assert abs((first.value + second.value) / 2 - LOSS) > 0.1
