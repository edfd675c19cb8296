"""Work divided over processes, without servers: what an update computes does not depend on how it is divided."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from arise.engines.environments import python_of
from arise.engines.local.models import save
from arise.engines.local.small_model import small_model
from arise.engines.remote.trainer import Job, TrainerGroup, TrainerSpec
from arise.engines.remote.workers.loop import Row, UpdateSpec
from arise.types import LossSpec
from tests.conformance.conftest import CORPUS

SHORTEST = 60


def rows(count: int, seed: int) -> list[Row]:
    """Conversations with two generated parts and advantages of both signs."""
    rng, made = np.random.default_rng(seed), []
    for advantage in np.linspace(-1.5, 2.0, count):
        length = int(rng.integers(SHORTEST, 200))
        place = np.arange(length)
        generated = ((place > 20) & (place < 30)) | (place > length - 15)
        made.append(Row(rng.integers(2, 300, length), generated, np.zeros(length), float(advantage)))
    return made


def score(group: TrainerGroup, given: Sequence[Row]) -> list[NDArray[np.float64]]:
    """Log-probs of the generated tokens of each row; processes that have the same rows must agree."""
    found: dict[int, NDArray[np.float64]] = {}
    for numbers, answer in group.call_with_rows("score", given, temperature=1.0):
        ends = np.cumsum([given[n].generated_U.sum() for n in numbers])
        for number, logprob in zip(numbers, np.split(answer.arrays["logprob"], ends[:-1]), strict=True):
            np.testing.assert_allclose(logprob, found.setdefault(number, logprob), atol=1e-5)
    return [found[number] for number in range(len(given))]


def behaved(given: Sequence[Row], logprobs: Sequence[NDArray[np.float64]]) -> list[Row]:
    """The rows as an older policy would have sampled them, so that some tokens are masked and some clipped."""
    made = []
    for row, logprob in zip(given, logprobs, strict=True):
        recorded = np.zeros(len(row.ids_U))
        recorded[row.generated_U] = logprob + np.random.default_rng(len(row.ids_U)).uniform(-1.5, 1.5, len(logprob))
        made.append(Row(row.ids_U, row.generated_U, recorded, row.advantage))
    return made


def update(given: list[Row]) -> Job:
    tokens = sum(int(row.generated_U.sum()) for row in given)
    values: dict[str, Any] = asdict(LossSpec()) | {"betas": (0.9, 0.999), "weight_decay": 0.01, "max_grad_norm": 1e9}
    return Job(given, UpdateSpec(**values, learning_rate=1e-3, token_count=tokens))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    folder = tmp_path_factory.mktemp("models") / "small"
    made = small_model(CORPUS, vocabulary=320, hidden=64, layers=2, heads=1, kv_heads=1, context_length=512)
    save(made.model, made.tokenizer, folder)
    return folder


def test_updates_on_two_processes_equal_those_on_one(library: str, model: Path, tmp_path: Path) -> None:
    """The first batch has rows of several lengths, the second has one row for two processes."""

    def group(processes: int, budget: int) -> TrainerGroup:
        python = python_of(library, device="cpu")
        spec = TrainerSpec(library, python, str(model), processes=processes, token_budget=budget)
        return TrainerGroup(spec, tmp_path / f"logs-{processes}").start()

    one = group(1, 100_000)
    batches = [rows(5, seed=0), rows(1, seed=1)]
    try:
        batches = [behaved(batch, score(one, batch)) for batch in batches]
        expected = [one.take(update(batch)) for batch in batches]
        after = score(one, batches[0])
    finally:
        one.close()
    assert 0 < expected[0].kept_tokens < update(batches[0]).spec.token_count
    two = group(2, SHORTEST // 2)  # every row is longer than a micro-batch
    try:
        found = [two.take(update(batch)) for batch in batches]
        moved = score(two, batches[0])
    finally:
        two.close()
    for taken, wanted in zip(found, expected, strict=True):
        assert asdict(taken) == pytest.approx(asdict(wanted), rel=1e-5, abs=1e-7)
    for logprob, wanted_U in zip(moved, after, strict=True):
        np.testing.assert_allclose(logprob, wanted_U, atol=1e-3)
