"""Every engine under test is made here; the suite speaks `ports.Engine`, but for a few looks inside this engine."""

import copy
from collections.abc import Callable, Iterator
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


def tiny_model(seed: int = 0, context_length: int = 512, scale: float = 4.0) -> LoadedModel:
    """A model that is quick to build and, scaled up, far from uniform, so that numerical slips show."""
    loaded = small_model(CORPUS, vocabulary=320, hidden=64, layers=2, context_length=context_length, seed=seed)
    for parameter in loaded.model.parameters():
        parameter.data.mul_(scale if parameter.dim() == 2 else 1.0)
    return loaded


@pytest.fixture(params=["fast", "torch", "generic", "lora"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which engine a test runs against."""
    return str(request.param)


@pytest.fixture
def make_engine(kind: str) -> Iterator[EngineMaker]:
    """Builds engines of this kind; equal arguments give equal engines."""
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
