"""The gradient of Eq. 19 against finite differences and against torch autograd of the printed formula."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from arise.method.loss import policy_loss
from tests.builders import Floats, close

Tokens = tuple[Floats, Floats, Floats, Floats]
SEEDS = st.integers(0, 2**32 - 1)


def tokens(seed: int, size: int = 60) -> Tokens:
    """Ratios over and beyond the bounds, advantages of both signs and zero, and context tokens."""
    random = np.random.default_rng(seed)
    behaviour_U = -random.exponential(1.0, size)
    logprob_U = behaviour_U + random.normal(0.3, 0.9, size)
    advantage_U = random.choice([-1.0, 0.0, 1.0], size) * random.exponential(1.0, size)
    return logprob_U, behaviour_U, advantage_U, (random.random(size) < 0.8).astype(np.float64)


def printed_loss(logprob_U: Tensor, behaviour_U: Floats, advantage_U: Floats, generated_U: Floats) -> Tensor:
    """Eqs. 18 and 19 as printed: mask, likelihoods and advantages fixed, omega differentiated."""
    ratio_U = torch.exp(logprob_U - torch.tensor(behaviour_U))
    advantage, generated = torch.tensor(advantage_U), torch.tensor(generated_U)
    mask_U = (generated * ((ratio_U > 0.5) & (ratio_U < 5.0))).detach()
    terms_U = torch.minimum(-ratio_U * advantage, 3.0 * advantage.abs())
    return (mask_U * terms_U).sum() / generated.sum().clamp(min=1)


@given(SEEDS)
def test_value_and_gradient_equal_autograd_of_the_printed_loss(seed: int) -> None:
    logprob_U, behaviour_U, advantage_U, generated_U = tokens(seed)
    leaf = torch.tensor(logprob_U, requires_grad=True)
    value = printed_loss(leaf, behaviour_U, advantage_U, generated_U)
    value.backward()
    loss = policy_loss(logprob_U, behaviour_U, advantage_U, generated_U)
    close(loss.value, value.item(), tolerance=1e-12)
    # Where A = 0 both branches of the minimum are 0: autograd may split the tie, the derivative is 0 either way.
    assert leaf.grad is not None
    close(loss.gradient_U, leaf.grad.numpy(), tolerance=1e-12)


@given(SEEDS)
def test_gradient_equals_finite_differences(seed: int) -> None:
    logprob_U, behaviour_U, advantage_U, generated_U = tokens(seed, size=12)
    ratio_U = np.exp(logprob_U - behaviour_U)
    if min(np.abs(ratio_U - edge).min() for edge in (0.5, 3.0, 5.0)) < 1e-4:
        return  # the loss jumps or bends there
    gradient_U = policy_loss(logprob_U, behaviour_U, advantage_U, generated_U).gradient_U
    width = 1e-6
    for u in range(len(logprob_U)):
        up, down = logprob_U.copy(), logprob_U.copy()
        up[u] += width
        down[u] -= width
        rise = [policy_loss(moved, behaviour_U, advantage_U, generated_U).value for moved in (up, down)]
        assert (rise[0] - rise[1]) / (2 * width) == pytest.approx(gradient_U[u], abs=1e-8)


@given(SEEDS, st.lists(st.integers(0, 60), max_size=4))
def test_workers_with_the_global_count_sum_to_the_whole(seed: int, cuts: list[int]) -> None:
    arrays = tokens(seed)
    whole = policy_loss(*arrays)
    count = int(arrays[3].sum())
    edges = [0, *sorted(cuts), 60]
    parts = [policy_loss(*(array[start:end] for array in arrays), token_count=count) for start, end in pairwise(edges)]
    close(sum(part.value for part in parts), whole.value, tolerance=1e-12)
    close(np.concatenate([part.gradient_U for part in parts]), whole.gradient_U, tolerance=1e-15)
    assert sum(part.kept_tokens for part in parts) == whole.kept_tokens
    assert sum(part.dual_clipped_tokens for part in parts) == whole.dual_clipped_tokens


@given(SEEDS)
def test_single_precision_agrees_with_double(seed: int) -> None:
    arrays = tokens(seed)
    ratio_U = np.exp(arrays[0] - arrays[1])
    if min(np.abs(ratio_U - edge).min() for edge in (0.5, 3.0, 5.0)) < 1e-4:
        return
    logprob_U, behaviour_U, advantage_U = (array.astype(np.float32) for array in arrays[:3])
    single, double = policy_loss(logprob_U, behaviour_U, advantage_U, arrays[3]), policy_loss(*arrays)
    assert single.gradient_U.dtype == np.float32
    close(single.value, double.value, tolerance=1e-5)
    close(single.gradient_U, double.gradient_U, tolerance=1e-5)
    np.testing.assert_array_equal(single.kept_U, double.kept_U)


@given(SEEDS)
def test_only_generated_tokens_within_the_bounds_carry_gradient(seed: int) -> None:
    arrays = tokens(seed)
    loss = policy_loss(*arrays)
    ratio_U = np.exp(arrays[0] - arrays[1])
    np.testing.assert_array_equal(loss.kept_U, (arrays[3] == 1) & (ratio_U > 0.5) & (ratio_U < 5.0))
    assert not loss.gradient_U[~loss.kept_U].any()
