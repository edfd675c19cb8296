"""Engines for tests: one vLLM server and a few trainers, started once and set back between tests."""

import asyncio
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from arise.engines.chat import ChatFormat
from arise.engines.environments import python_of
from arise.engines.local.models import save
from arise.engines.local.small_model import small_model
from arise.engines.remote.engine import RemoteEngine
from arise.engines.remote.policy import Policy
from arise.engines.remote.processes import Process
from arise.engines.remote.trainer import TrainerGroup, TrainerSpec
from arise.engines.vllm.fleet import Fleet
from arise.engines.vllm.launch import VllmSpec
from arise.engines.vllm.spec import FleetSpec
from arise.engines.vllm.untied import untied_copy
from tests.conformance.conftest import CORPUS

WINDOW = 2048
MOST_IDLE = 4
Key = tuple[Any, ...]


class SharedEngine(RemoteEngine):
    """An engine whose trainer and server outlive it."""

    def __init__(self, bench: "Bench", key: Key, policy: Policy, trainer: TrainerSpec, work: Path) -> None:
        base = policy.folder if trainer.lora_rank else ""
        address = bench.address_of(base, trainer.lora_rank)
        fleet = Fleet(FleetSpec(None, 0, [address], policy.end_ids, policy.window, base=base))
        super().__init__(policy, trainer, fleet, work)
        self._bench, self._key = bench, key

    def _start_trainer(self) -> TrainerGroup:
        self._group = self._bench.trainer(self._key, self._trainer)
        return self._group

    def close(self) -> None:
        """Hand the trainer back."""
        if self._group is not None:
            self._bench.free(self._key, self._group)
        self._calls.shutdown()


class Bench:
    """What tests share: `engine` gives equal engines for equal arguments."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, list[SharedEngine]()
        self._servers: dict[str, tuple[Process, str]] = {}
        self._idle: list[tuple[Key, TrainerGroup]] = []
        self._starts: dict[Key, Path] = {}
        self._count = 0

    @property
    def address(self) -> str:
        """The server that loads all weights."""
        return self.address_of("", 0)

    def address_of(self, base: str, lora_rank: int) -> str:
        """A server, with room for one conversation at a time: what it computes is then always the same."""
        if base not in self._servers:
            spec = VllmSpec(python_of("vllm", device="cpu"), WINDOW, cache_gib=1.0, rows=1, lora_rank=lora_rank)
            served = base or untied_copy(str(self.model(0, 4.0)), self._folder / "served")
            self._servers[base] = spec.start(len(self._servers), served, self._folder / "logs")
            address = self._servers[base][1]
            fleet = Fleet(FleetSpec(None, 0, [address], frozenset([1]), WINDOW, first_seconds=900.0, base=base))
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, fleet.open(served, 0)).result()
        return self._servers[base][1]

    def model(self, seed: int, scale: float) -> Path:
        """A tied model that vLLM computes on a CPU and that is far from uniform, so that numerical slips show."""
        folder = self._folder / f"model-{seed}-{scale}"
        if not folder.exists():
            shape = {"hidden": 64, "layers": 2, "heads": 1, "kv_heads": 1}
            loaded = small_model(CORPUS, vocabulary=320, context_length=WINDOW, seed=seed, **shape)
            for parameter in loaded.model.parameters():
                parameter.data.mul_(scale if parameter.dim() == 2 else 1.0)
            save(loaded.model, loaded.tokenizer, folder)
        return folder

    def engine(
        self,
        library: str,
        *,
        seed: int = 0,
        scale: float = 4.0,
        context_length: int = 512,
        end_ids: Any = (),
        processes: int = 1,
        **options: Any,
    ) -> Any:
        """Return an open engine, as it was when it was first made; the suite's helpers name the local engine's type."""
        from transformers import AutoTokenizer

        folder = self.model(seed, scale)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ends = frozenset(i for i in end_ids or ChatFormat(tokenizer).end_ids if i < len(tokenizer))
        policy = Policy(str(folder), tokenizer, context_length, len(tokenizer), ends)
        spec = TrainerSpec(library, python_of(library, device="cpu"), str(folder), processes=processes, **options)
        self._count += 1
        key = (library, seed, scale, processes, *sorted(options.items()))
        engine = SharedEngine(self, key, policy, spec, self._folder / f"work-{self._count}")
        self._made.append(engine)
        with ThreadPoolExecutor(1) as thread:  # a test may ask for an engine inside its own event loop
            thread.submit(asyncio.run, engine.open()).result()
        return engine

    def trainer(self, key: Key, spec: TrainerSpec) -> TrainerGroup:
        """A trainer at its start: an idle one that is set back, else a new one."""
        for place in reversed(range(len(self._idle))):
            if self._idle[place][0] == key:
                _, group = self._idle.pop(place)
                group.call("load", folder=str(self._starts[key]))
                return group
        group = TrainerGroup(spec, self._folder / "logs" / f"{spec.library}-{self._count}").start()
        if key not in self._starts:
            start = self._folder / f"start-{len(self._starts)}"
            group.call("save", folder=str(start))
            self._starts[key] = start
        return group

    def free(self, key: Key, group: TrainerGroup) -> None:
        """Keep a few idle trainers, those used last: each takes memory."""
        if not all(process.running for process in group._processes):
            group.close()
            return
        self._idle.append((key, group))
        while len(self._idle) > MOST_IDLE:
            self._idle.pop(0)[1].close()

    def hand_back(self) -> None:
        """Close what a test made."""
        for engine in self._made:
            engine.close()
        self._made.clear()

    def close(self) -> None:
        """End every process."""
        self.hand_back()
        for _, group in self._idle:
            group.close()
        for process, _ in self._servers.values():
            process.end()


class _TheBench:
    """The one bench of a test session."""

    def __init__(self) -> None:
        self._bench: Bench | None = None

    def __call__(self, folders: pytest.TempPathFactory) -> Bench:
        self._bench = self._bench or Bench(folders.mktemp("bench"))
        return self._bench

    def close(self) -> None:
        if self._bench is not None:
            self._bench.close()
            self._bench = None


the_bench = _TheBench()


def relative(found: float, wanted: float) -> float:
    """How far a number is from another one, as a share of it."""
    return abs(found - wanted) / max(abs(wanted), math.ulp(0.0))


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The largest difference of two sets of weights."""
    return max(float((one[name] - other[name]).abs().max()) for name in one)
