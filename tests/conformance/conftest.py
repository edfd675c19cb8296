"""Every engine under test is made here; the suite speaks `ports.Engine`, but for a few looks inside this engine.

ARISE_ENGINES names trainers of other processes, such as "areal verl": the tests that speak the port alone then run on
them, sampled by vLLM, instead of on the local engine.
"""

import copy
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from arise.engines.local import LocalEngine
from arise.engines.local.models import LoadedModel
from arise.engines.local.small_model import small_model
from arise.engines.local.weights import LoraSpec, with_adapters

CORPUS = [
    "list the files, read each of them, then count the words and write the answer down " * 8,
    "0 1 2 3 4 5 6 7 8 9 ",
]
LORA = LoraSpec(rank=4, alpha=8)
EngineMaker = Callable[..., LocalEngine]
REMOTE = os.environ.get("ARISE_ENGINES", "").split()
LOCAL_ONLY = {
    "test_invariance.py": "vLLM does not promise the same bits in any company",
    "test_a_running_turn_continues_under_the_published_version": "looks into the generator",
    "test_a_policy_that_gives_nan_is_skipped": "writes into the model",
    "test_checkpointed_layers_are_computed_again_in_the_backward_pass": "counts passes of the model",
    "test_unpublished_weights_and_foreign_states_are_refused": "takes a parameter from the trainer",
    "test_the_exported_folder_reloads_with_plain_transformers": "calls the model",
    "test_adapters_are_refused_on_other_frozen_weights_and_another_scale": "trains adapters",
}
"""`tests/engines` has their counterparts where there is one."""


def pytest_sessionfinish() -> None:
    """End the processes that engines shared."""
    if REMOTE:
        from tests.engines.bench import the_bench

        the_bench.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what cannot run on engines of other processes."""
    if REMOTE:
        here = Path(__file__).parent
        items[:] = [item for item in items if here not in item.path.parents or _on_other_processes(item)]


def _on_other_processes(item: pytest.Item) -> bool:
    name = getattr(item, "originalname", item.name)
    asked = getattr(getattr(item, "callspec", None), "params", {})
    return asked.get("kind") in REMOTE and not {name, item.path.name} & set(LOCAL_ONLY)


def tiny_model(seed: int = 0, context_length: int = 512, scale: float = 4.0) -> LoadedModel:
    """A model that is quick to build and, scaled up, far from uniform, so that numerical slips show."""
    loaded = small_model(CORPUS, vocabulary=320, hidden=64, layers=2, context_length=context_length, seed=seed)
    for parameter in loaded.model.parameters():
        parameter.data.mul_(scale if parameter.dim() == 2 else 1.0)
    return loaded


@pytest.fixture(scope="session" if REMOTE else "function", params=REMOTE or ["fast", "torch", "generic", "lora"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which engine a test runs against."""
    return str(request.param)


@pytest.fixture
def make_engine(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineMaker]:
    """Builds engines of this kind; equal arguments give equal engines."""
    if kind in REMOTE:
        from tests.engines.bench import the_bench

        bench = the_bench(tmp_path_factory)
        yield partial(bench.engine, kind)
        bench.hand_back()
        return
    made: list[LocalEngine] = []

    def make(*, seed: int = 0, context_length: int = 512, scale: float = 4.0, **options: Any) -> LocalEngine:
        loaded = tiny_model(seed, context_length, scale)
        options = {
            "lora": LORA if kind == "lora" else None,
            "fast": kind != "generic",
            "native": kind != "torch",
        } | options
        engine = LocalEngine(loaded.model, loaded.tokenizer, **options)
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def reference(kind: str) -> Callable[[Path], Any]:
    """Loads an exported policy with plain transformers, with fresh adapters where the engine trains adapters."""

    def load(folder: Path) -> Any:
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        return with_adapters(copy.deepcopy(model), LORA, seed=0) if kind == "lora" else model

    return load
