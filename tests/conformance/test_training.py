"""What an update does: the paper's loss, exactly; nothing where there is nothing to learn or the numbers are bad."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conformance.conftest import EngineMaker
from tests.conformance.rollouts import full_logprobs, moved, rollouts

from arise.engines.faults import EngineFault
from arise.engines.local.weights import plain_model, trainable
from arise.types import Example, LossSpec, OptimSpec, StepStats, Tokens

Reference = Callable[[Path], Any]
FREE = OptimSpec(learning_rate=1e-3, warmup_updates=0, max_grad_norm=1e9)


def recorded(row: Tokens) -> torch.Tensor:
    return torch.from_numpy(row.logprob_U[row.generated_U])


def printed_loss(model: Any, examples: list[Example], spec: LossSpec) -> torch.Tensor:
    """Eq. 19 as printed, left to autograd; shares no code with the engine."""
    total, count = torch.zeros(()), 0
    for example in examples:
        for row in example.rows:
            ratio = (full_logprobs(plain_model(model), row, spec.temperature) - recorded(row)).exp()
            kept = ((ratio > spec.min_ratio) & (ratio < spec.max_ratio)).detach()
            term = -ratio * example.advantage
            if example.advantage < 0:
                term = term.clamp(max=spec.dual_clip * abs(example.advantage))
            total = total + (term * kept).sum()
            count += int(row.generated_U.sum())
    return total / count


def exported(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.4])
@pytest.mark.parametrize(("scale", "tolerance"), [(4.0, 1e-4), (1.0, 1e-5)])
def test_the_policy_that_sampled_has_the_ratio_one_at_any_temperature(
    make_engine: EngineMaker, temperature: float, scale: float, tolerance: float
) -> None:
    engine = make_engine(scale=scale, token_budget=600)

    async def run() -> StepStats:
        batch = await rollouts(engine, count=8, temperature=temperature)
        for row in (row for example in batch for row in example.rows):
            scored = await engine.score(row, temperature)
            np.testing.assert_allclose(scored.logprob_U, row.logprob_U, atol=tolerance)
        return await engine.train_step(batch, LossSpec(temperature=temperature), FREE)

    stats = asyncio.run(run())
    assert stats.kept_tokens == stats.generated_tokens > 100
    assert stats.max_abs_log_ratio < tolerance


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("drift", [0.0, 1.0, 2.5])
def test_loss_and_gradient_norm_equal_an_independent_autograd(
    make_engine: EngineMaker, reference: Reference, tmp_path: Path, drift: float, temperature: float
) -> None:
    engine, spec = make_engine(), LossSpec(temperature=temperature)

    async def run() -> tuple[list[Example], StepStats]:
        await engine.export_hf(tmp_path / "before")
        batch = [moved(example, drift) for example in await rollouts(engine, temperature=temperature)]
        return batch, await engine.train_step(batch, spec, FREE)

    batch, stats = asyncio.run(run())
    model = reference(tmp_path / "before")
    loss = printed_loss(model, batch, spec)
    loss.backward()
    norm = torch.stack([p.grad.norm() for p in trainable(model).values() if p.grad is not None]).norm()
    assert stats.loss == pytest.approx(loss.item(), rel=1e-4, abs=1e-6)
    assert stats.grad_norm == pytest.approx(norm.item(), rel=1e-4)
    assert stats.generated_tokens == sum(int(e.rows[0].generated_U.sum()) for e in batch)
    assert (stats.kept_tokens < stats.generated_tokens) == (drift > 0.5)


def test_a_batch_with_no_kept_token_changes_nothing(make_engine: EngineMaker, tmp_path: Path) -> None:
    engine = make_engine()

    async def run() -> None:
        batch = await rollouts(engine)
        await engine.train_step(batch, LossSpec(), FREE)  # AdamW now has momentum
        await engine.publish()
        await engine.export_hf(tmp_path / "before")
        stats = await engine.train_step(batch, LossSpec(min_ratio=50.0, max_ratio=60.0), FREE)
        assert (stats.kept_tokens, stats.loss, stats.grad_norm) == (0, 0.0, 0.0)
        assert stats.skipped == "the gradient is zero"
        await engine.export_hf(tmp_path / "after")

    asyncio.run(run())
    before, after = exported(tmp_path / "before"), exported(tmp_path / "after")
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_micro_batches_and_row_splits_equal_the_whole(make_engine: EngineMaker, tmp_path: Path) -> None:
    whole, split = make_engine(token_budget=100_000), make_engine(token_budget=150)

    async def run() -> tuple[StepStats, StepStats, StepStats]:
        batch = [moved(example, 0.4) for example in await rollouts(whole)]
        doubled = [Example((*e.rows, *e.rows), e.advantage) for e in batch]
        twice = await make_engine().train_step(doubled, LossSpec(), FREE)
        stats = [await engine.train_step(batch, LossSpec(), FREE) for engine in (whole, split)]
        await whole.export_hf(tmp_path / "whole")
        await split.export_hf(tmp_path / "split")
        return stats[0], stats[1], twice

    one, many, twice = asyncio.run(run())
    assert many.loss == pytest.approx(one.loss, rel=1e-5)
    assert many.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)
    assert twice.loss == pytest.approx(one.loss, rel=1e-5), "more rows a trajectory must not change the scale"
    assert twice.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)


def in_two_rows(example: Example) -> Example:
    """The same tokens, the first half of the generated ones marked in one row and the others in a second."""
    (row,) = example.rows
    places = np.flatnonzero(row.generated_U)
    masks = [np.isin(np.arange(len(row)), half) for half in np.array_split(places, 2)]
    return Example(tuple(Tokens(row.ids_U, mask, row.logprob_U, row.version_U) for mask in masks), example.advantage)


def test_a_trajectory_in_two_rows_weighs_as_in_one(make_engine: EngineMaker) -> None:
    async def run() -> tuple[StepStats, StepStats]:
        batch = [moved(example, 0.4) for example in await rollouts(make_engine())]
        split = [in_two_rows(example) if n % 2 else example for n, example in enumerate(batch)]
        return await make_engine().train_step(batch, LossSpec(), FREE), await make_engine().train_step(
            split, LossSpec(), FREE
        )

    one, two = asyncio.run(run())
    assert (two.generated_tokens, two.kept_tokens) == (one.generated_tokens, one.kept_tokens)
    assert two.loss == pytest.approx(one.loss, rel=1e-5)
    assert two.grad_norm == pytest.approx(one.grad_norm, rel=1e-5)


def test_a_batch_that_teaches_nothing_does_not_end_a_row_of_failures(make_engine: EngineMaker) -> None:
    engine = make_engine()

    async def run() -> None:
        batch = await rollouts(engine)
        poison, nothing = ([Example(e.rows, advantage) for e in batch] for advantage in (1e300, 0.0))
        for _ in range(2):
            assert (await engine.train_step(poison, LossSpec(), FREE)).skipped
            assert (await engine.train_step(nothing, LossSpec(), FREE)).skipped == "the gradient is zero"
        with pytest.raises(EngineFault, match="three updates in a row"):
            await engine.train_step(poison, LossSpec(), FREE)

    asyncio.run(run())


def test_infinite_gradients_skip_the_update_and_the_third_in_a_row_is_a_fault(
    make_engine: EngineMaker, tmp_path: Path
) -> None:
    engine = make_engine()

    async def run() -> None:
        batch = await rollouts(engine)
        await engine.train_step(batch, LossSpec(), FREE)
        await engine.publish()
        await engine.export_hf(tmp_path / "before")
        poison = [Example(example.rows, 1e300) for example in batch]
        for _ in range(2):
            stats = await engine.train_step(poison, LossSpec(), FREE)
            assert stats.skipped in ("the loss is not finite", "the gradient is not finite")
        assert not (await engine.train_step(batch, LossSpec(), OptimSpec(learning_rate=1e-30))).skipped
        for _ in range(2):
            await engine.train_step(poison, LossSpec(), FREE)
        with pytest.raises(EngineFault, match="three updates in a row"):
            await engine.train_step(poison, LossSpec(), FREE)
        await engine.export_hf(tmp_path / "after")

    asyncio.run(run())
    before, after = exported(tmp_path / "before"), exported(tmp_path / "after")
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_policy_that_gives_nan_is_skipped(make_engine: EngineMaker) -> None:
    engine = make_engine()

    async def run() -> StepStats:
        batch = await rollouts(engine)
        parameter = next(iter(engine._trainer.parameters.values()))
        parameter.data.view(-1)[0] = float("nan")
        return await engine.train_step(batch, LossSpec(), FREE)

    assert asyncio.run(run()).skipped == "the loss is not finite"


@pytest.mark.parametrize(
    ("row", "advantage", "message"),
    [
        (
            Tokens(np.array([1, 2]), np.array([False, True]), np.array([0, np.nan]), np.array([-1, 0])),
            1.0,
            "not finite",
        ),
        (Tokens(np.array([1, 2]), np.array([False, True]), np.zeros(2), np.array([-1, 0])), np.inf, "not finite"),
        (Tokens(np.array([1, 2]), np.array([True, True]), np.zeros(2), np.array([0, 0])), 1.0, "first token"),
        (Tokens(np.ones(600, int), np.zeros(600, bool), np.zeros(600), np.zeros(600, int)), 1.0, "window is 512"),
    ],
)
def test_bad_examples_are_named(make_engine: EngineMaker, row: Tokens, advantage: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asyncio.run(make_engine().train_step([Example((row,), advantage)], LossSpec(), FREE))


@pytest.mark.parametrize("options", [{"precision": "bf16"}, {"gradient_checkpointing": True}])
def test_options_take_nearly_the_same_update(make_engine: EngineMaker, options: dict[str, Any]) -> None:
    async def run() -> tuple[StepStats, StepStats]:
        batch = await rollouts(make_engine())
        return await make_engine().train_step(batch, LossSpec(), FREE), await make_engine(**options).train_step(
            batch, LossSpec(), FREE
        )

    plain, other = asyncio.run(run())
    tolerance = 0.1 if "precision" in options else 1e-5
    assert other.grad_norm == pytest.approx(plain.grad_norm, rel=tolerance)


def test_checkpointed_layers_are_computed_again_in_the_backward_pass(make_engine: EngineMaker) -> None:
    batch = asyncio.run(rollouts(make_engine()))

    def passes(**options: Any) -> int:
        engine, seen = make_engine(token_budget=100_000, **options), [0]

        def count(*_: Any) -> None:
            seen[0] += 1

        plain_model(engine._model).model.layers[0].mlp.register_forward_pre_hook(count)
        asyncio.run(engine.train_step(batch, LossSpec(), FREE))
        return seen[0]

    assert passes(gradient_checkpointing=True) == 2 * passes()
