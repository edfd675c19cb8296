import numpy as np
import pytest

from arise.method.loss import BLOCK, importance_ratio, policy_loss
from tests.builders import NAN, close

pytestmark = pytest.mark.filterwarnings("error")


def test_importance_ratio_in_place() -> None:
    out = np.empty(2)
    ratio_U = importance_ratio(np.log([1.0, 4.0]), np.log([2.0, 2.0]), out=out)
    assert ratio_U is out
    close(ratio_U, [0.5, 2.0])
    close(importance_ratio(np.zeros(1), np.zeros(1)), [1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_follows_the_input(dtype: type[np.floating]) -> None:
    array = np.zeros(3, dtype=dtype)
    assert policy_loss(array, array, array, [1, 1, 1]).gradient_U.dtype == dtype


def test_mixed_precision_is_computed_in_double() -> None:
    single = np.zeros(3, dtype=np.float32)
    assert policy_loss(single, single, np.zeros(3), [1, 1, 1]).gradient_U.dtype == np.float64


def test_many_blocks_equal_one_formula() -> None:
    random = np.random.default_rng(0)
    size = 2 * BLOCK + 17
    logprob, behaviour = random.normal(-1, 0.5, size), random.normal(-1, 0.5, size)
    advantage, generated = random.normal(size=size), random.random(size) < 0.7
    ratio = np.exp(logprob - behaviour)
    kept = generated & (ratio > 0.5) & (ratio < 5.0)
    clipped = kept & (advantage < 0) & (ratio > 3.0)
    loss = policy_loss(logprob, behaviour, advantage, generated)
    close(loss.value, (np.minimum(-ratio * advantage, 3 * np.abs(advantage)) * kept).sum() / generated.sum())
    close(loss.gradient_U, np.where(kept & ~clipped, -ratio * advantage, 0) / generated.sum())
    np.testing.assert_array_equal(loss.kept_U, kept)
    assert (loss.kept_tokens, loss.dual_clipped_tokens) == (kept.sum(), clipped.sum())


def test_other_bounds() -> None:
    loss = policy_loss(np.log([1.5, 3.0]), [0, 0], [-1, -1], [1, 1], min_ratio=0, max_ratio=2, dual_clip=1.2)
    assert loss.kept_U.tolist() == [True, False]
    assert loss.value == pytest.approx(1.2 / 2)
    assert loss.gradient_U.tolist() == [0, 0]
    assert loss.dual_clipped_tokens == 1


def test_clip_starts_above_kappa() -> None:
    ratio = float(np.exp(np.log(3.0)))
    loss = policy_loss(np.log([3.0, 4.0]), [0, 0], [-1, -1], [1, 1], dual_clip=ratio)
    assert loss.dual_clipped_tokens == 1
    close(loss.gradient_U, [1.5, 0.0])


def test_context_tokens_may_hold_anything() -> None:
    for bad in (NAN, np.inf, -np.inf, 1e308):
        loss = policy_loss([0.0, bad, 0.0], [0.0, 0.0, bad], [1.0, bad, bad], [1, 0, 0])
        assert loss.value == -1.0
        assert loss.gradient_U.tolist() == [-1.0, 0.0, 0.0]
        assert loss.kept_U.tolist() == [True, False, False]


def test_an_overflowing_or_vanishing_ratio_is_out_of_bounds() -> None:
    loss = policy_loss([0.0, 900.0, -900.0], [0.0, -900.0, 900.0], [1.0, 1.0, 1.0], [1, 1, 1])
    assert loss.kept_U.tolist() == [True, False, False]
    assert loss.value == pytest.approx(-1 / 3)
    assert loss.gradient_U.tolist() == [pytest.approx(-1 / 3), 0.0, 0.0]


@pytest.mark.parametrize("name", ["logprob_U", "behaviour_U", "advantage_U"])
@pytest.mark.parametrize("bad", [NAN, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, BLOCK + 3])
def test_generated_tokens_must_be_finite(name: str, bad: float, place: int) -> None:
    arrays = {key: np.zeros(BLOCK + 9) for key in ("logprob_U", "behaviour_U", "advantage_U")}
    arrays[name][place] = bad
    with pytest.raises(ValueError, match=rf"^{name}\[{place}\] = {bad} of a generated token is not finite$"):
        policy_loss(arrays["logprob_U"], arrays["behaviour_U"], arrays["advantage_U"], np.ones(BLOCK + 9))


def test_arrays_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^advantage_U has shape \(1,\), but logprob_U has shape \(2,\)$"):
        policy_loss([0, 0], [0, 0], [0], [1, 1])
    with pytest.raises(ValueError, match=r"^behaviour_U must be 1-d, got shape \(1, 2\)$"):
        policy_loss([0, 0], [[0, 0]], [0, 0], [1, 1])


def test_mask_values() -> None:
    with pytest.raises(ValueError, match=r"^generated_U\[2\] = 2 must be 0 \(context\) or 1 \(generated\)$"):
        policy_loss([0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 2])


def test_not_numbers() -> None:
    with pytest.raises(ValueError, match=r"^behaviour_U must hold numbers, got an array of <U1$"):
        policy_loss([0.0], ["a"], [0.0], [1])


@pytest.mark.parametrize(("low", "high"), [(-0.1, 5.0), (2.0, 2.0), (3.0, 2.0), (NAN, 2.0)])
def test_ratio_bounds_must_be_ordered(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=r"^need 0 <= min_ratio < max_ratio, got min_ratio = "):
        policy_loss([0], [0], [0], [1], min_ratio=low, max_ratio=high)


def test_a_zero_advantage_is_never_clipped() -> None:
    assert policy_loss(np.log([4.0, 4.0]), [0, 0], [0, -1], [1, 1]).dual_clipped_tokens == 1


def test_a_dual_clip_below_one_is_allowed() -> None:
    assert policy_loss([0], [0], [-1], [1], dual_clip=0.5).value == 0.5


@pytest.mark.parametrize("bad", [0.0, -1.0, NAN])
def test_dual_clip(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"^dual_clip = {bad} must be positive$"):
        policy_loss([0], [0], [0], [1], dual_clip=bad)


def test_token_count_below_what_is_there() -> None:
    assert policy_loss([0, 0], [0, 0], [1, 1], [1, 1], token_count=2).value == -1.0
    assert policy_loss([0], [0], [1], [1], token_count=1).value == -1.0
    with pytest.raises(ValueError, match=r"^token_count = 1 is the whole batch's count, but this part alone has 2"):
        policy_loss([0, 0], [0, 0], [0, 0], [1, 1], token_count=1)
    with pytest.raises(ValueError, match=r"^token_count = -1 "):
        policy_loss([0], [0], [0], [0], token_count=-1)


def test_no_tokens() -> None:
    loss = policy_loss([], [], [], [])
    assert (loss.value, loss.kept_tokens, loss.dual_clipped_tokens) == (0.0, 0, 0)
