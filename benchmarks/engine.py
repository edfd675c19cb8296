"""The engine compared with transformers.generate, a plain PyTorch loop and TRL: same model, prompts, token counts.

    python -m benchmarks.engine                       every part that can run here
    python -m benchmarks.engine sampling update       only some: sampling update prompts trl growth memory smollm2

TRL is compared where it is installed (`pip install trl==1.16.0`), SmolLM2 where it was pulled (`arise models pull`).
Contenders alternate within each round, so that a busy machine slows both; the table shows the median of the rounds.
Contenders compute on the engine's thread, TRL in a process of its own: a second computing thread in one process brings
helpers of its own, more than there are cores, and both sides are slower.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine, training
from arise.engines.local.models import load
from arise.engines.local.packing import Block, Packed, pack
from arise.engines.local.pretrained import available
from arise.types import Example, LossSpec, OptimSpec, Tokens
from benchmarks.conversations import (
    OBSERVATION,
    Lengths,
    Prompts,
    all_conversations,
    cold_rounds,
    conversations,
    fresh_model,
    run_generate,
    run_generate_with_cache,
    run_ours,
)
from benchmarks.side_by_side import ROUNDS, side_by_side

TRL_MISSING = f"run `{Path(sys.executable).with_name('pip')} install trl==1.16.0` first"
SMOLLM2_MISSING = "run `arise models pull smollm2-135m` first"
THREADS = torch.get_num_threads()
NEVER = [1 << 30]  # no token ends a turn, so that every contender makes the same number of tokens


def small_engine(**options: Any) -> LocalEngine:
    """The small model under the engine."""
    loaded = fresh_model()
    return LocalEngine(loaded.model, loaded.tokenizer, end_ids=NEVER, threads=THREADS, **options)


def beside(engine: LocalEngine, work: Callable[[int], object]) -> Callable[[int], object]:
    """The same work, done on the engine's thread."""
    return lambda turn: engine._scheduler.run_now(partial(work, turn))


def sampling() -> dict[str, float]:
    """64 concurrent conversations of four turns, all turns equally long or of mixed length."""
    found: dict[str, float] = {}
    engine = small_engine()
    model = fresh_model().model
    observation = ChatFormat(engine.tokenizer).extend([], OBSERVATION)
    rounds = cold_rounds(engine, 64, 8, 200)
    random = np.random.default_rng(0)
    equal = [[48] * 4 for _ in range(64)]
    mixed = [random.integers(8, 89, 4).tolist() for _ in range(64)]
    for name, lengths in (("48 tokens a turn", equal), ("8 to 88 tokens a turn", mixed)):
        asyncio.run(engine.publish())  # forgets the rounds before
        others: dict[str, Callable[..., object]] = {"transformers.generate": run_generate}
        if lengths is equal:
            others["generate, cache kept"] = run_generate_with_cache
        ratios = side_by_side(
            {"engine": partial(run_ours, engine, rounds, lengths)}
            | {
                other: beside(engine, partial(run, model, rounds, lengths, observation))
                for other, run in others.items()
            },
            sum(map(sum, lengths)),
            f"Sampling: small model, 64 conversations x 4 turns, {name}",
        )
        found = ratios if lengths is equal else found
    engine.close()
    return found


def synthetic_batch(rows: int, length: int, vocabulary: int, behaviour: float = -6.5) -> list[Example]:
    """Trajectories of which four fifths are generated."""
    random = np.random.default_rng(0)
    generated = np.arange(length) >= length // 5
    return [
        Example(
            (Tokens(random.integers(6, vocabulary, length), generated, np.full(length, behaviour), generated - 1),), a
        )
        for a in random.normal(size=rows)
    ]


def update() -> None:
    """One update of 64 trajectories x 500 tokens, and the bare forward and backward of the same tokens."""
    engine, rows, length = small_engine(), 64, 500
    model = fresh_model().model
    batch = synthetic_batch(rows, length, len(engine.tokenizer))
    ids = torch.from_numpy(np.stack([example.rows[0].ids_U for example in batch]))

    def bare(_: int) -> None:
        for part in ids.split(16):
            logits = model(part, use_cache=False).logits[:, :-1]
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()).backward()
        model.zero_grad()

    def ours(_: int) -> None:
        asyncio.run(engine.train_step(batch, LossSpec(0.0, 1e9), OptimSpec(learning_rate=1e-9)))

    side_by_side(
        {"bare forward + backward": beside(engine, bare), "engine": ours},
        rows * length,
        "Update: 64 trajectories x 500 tokens",
    )


def whole_rows(rows: Sequence[Tokens], device: torch.device) -> Packed:
    """Packed rows of which attention computes every one from its first token."""
    packed = pack(rows, device)
    block = Block(packed.spread_BT, packed.spread_BT, None)
    return replace(packed, blocks=(block,), shared=0, place_N=packed.home_N)


def prompts() -> float:
    """One update of 64 trajectories in groups of 8, with attention over their prompt once or in every row."""
    engine = small_engine()
    swapped: Any = training
    random = np.random.default_rng(0)
    batch: list[Example] = []
    for advantage in random.normal(size=64):
        shared = random.integers(6, len(engine.tokenizer), 100)
        shared = batch[-1].rows[0].ids_U[:100] if len(batch) % 8 else shared
        ids = np.concatenate([shared, random.integers(6, len(engine.tokenizer), int(random.integers(40, 160)))])
        generated = np.arange(len(ids)) >= len(shared)
        batch.append(Example((Tokens(ids, generated, np.full(len(ids), -6.5), generated - 1),), advantage))

    def update_with(packing: Callable[..., Packed], _: int) -> None:
        swapped.pack = packing
        asyncio.run(engine.train_step(batch, LossSpec(0.0, 1e9), OptimSpec(learning_rate=1e-9)))

    contenders = {"prompt once": partial(update_with, pack), "whole rows": partial(update_with, whole_rows)}
    title = "Update: attention over a prompt of 100 tokens that 8 trajectories share"
    found = side_by_side(contenders, sum(len(example.rows[0]) for example in batch), title)
    swapped.pack = pack
    return found["whole rows"]


def iteration(engine: LocalEngine, prompts: Prompts, lengths: Lengths, seed: int) -> None:
    """Sample one conversation a prompt, update, publish."""

    async def run() -> None:
        rows = await all_conversations(engine, prompts, lengths, seed)
        batch = [Example((row,), 1.0 - 2.0 * (i % 2)) for i, row in enumerate(rows)]
        await engine.train_step(batch, LossSpec(), OptimSpec(learning_rate=1e-6))
        await engine.publish()

    asyncio.run(run())


def trl() -> dict[int, float]:
    """Sample and update beside TRL's GRPOTrainer: one turn by its own means, four by a rollout function."""
    found: dict[int, float] = {}
    if find_spec("trl") is None:
        print(f"\nTRL: not compared, {TRL_MISSING}")
        return found
    engine = small_engine()
    for turns, length, prompt_tokens in ((1, 128, 100), (4, 48, 200)):
        prompts = conversations(engine.tokenizer, 64, 8, prompt_tokens)
        lengths = [[length] * turns for _ in prompts]
        command = [sys.executable, "-m", "benchmarks.trl_grpo", str(turns), str(length), str(prompt_tokens)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            ratios = side_by_side(
                {"engine": partial(iteration, engine, prompts, lengths), "TRL GRPOTrainer": partial(take_turn, other)},
                64 * turns * length,
                f"End to end: sample and update, 64 conversations of {turns} x {length} tokens",
            )
            found[turns] = ratios["TRL GRPOTrainer"]
    return found


def take_turn(other: "subprocess.Popen[str]", _: int) -> None:
    """Let another process work until it answers."""
    assert other.stdin is not None
    assert other.stdout is not None
    print("go", file=other.stdin, flush=True)
    if other.stdout.readline() != "done\n":
        raise RuntimeError(f"{other.args!r} ended")


def growth() -> dict[int, float]:
    """Cost of an iteration over four sizes; return the microseconds of a token."""
    engine = small_engine()
    found: dict[int, float] = {}
    print(
        "\nAn iteration: sample and update, 100 + 128 tokens a trajectory\n"
        f"{'trajectories':>14}{'seconds':>10}{'us/token':>10}"
    )
    for count in (16, 32, 64, 128):
        prompts = conversations(engine.tokenizer, count, count // 8, 100)
        seconds = []
        for seed in range(ROUNDS + 1):
            begin = time.perf_counter()
            iteration(engine, prompts, [[128]] * count, seed)
            seconds.append(time.perf_counter() - begin)
        best = statistics.median(seconds[1:])
        found[count] = best / (count * 228) * 1e6
        print(f"{count:>14}{best:>10.2f}{found[count]:>10.0f}", flush=True)
    return found


def memory() -> dict[int, float]:
    """Peak memory of an update, each in a fresh process; return the MiB of a budget of 4096 tokens."""
    found: dict[int, float] = {}
    print(
        f"\nPeak memory of an update of n x 500 tokens\n{'trajectories':>14}{'token budget':>14}{'MiB over start':>16}"
    )
    for rows, budget in ((64, 2048), (64, 4096), (64, 8192), (64, 16384), (16, 4096), (256, 4096)):
        command = [sys.executable, "-m", "benchmarks.engine", "memory-of", str(rows), str(budget)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        mib = json.loads(done.stdout)
        if budget == 4096:
            found[rows] = mib
        print(f"{rows:>14}{budget:>14}{mib:>16.0f}", flush=True)
    return found


def memory_of(rows: int, budget: int) -> None:
    """What one update needs at its peak over what the process held before it, in MiB."""
    engine = small_engine(token_budget=budget)
    optim = OptimSpec(learning_rate=1e-9)
    asyncio.run(engine.train_step(synthetic_batch(2, 50, len(engine.tokenizer)), LossSpec(0.0, 1e9), optim))
    batch = synthetic_batch(rows, 500, len(engine.tokenizer))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of start-up
    before = _peak_mib()
    asyncio.run(engine.train_step(batch, LossSpec(0.0, 1e9), optim))
    print(json.dumps(_peak_mib() - before))


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def smollm2() -> dict[str, float]:
    """SmolLM2-135M: 8 conversations that share a prompt of 300 tokens."""
    found: dict[str, float] = {}
    if not all(model.pulled for model in available()):
        print(f"\nSmolLM2: not compared, {SMOLLM2_MISSING}")
        return found
    loaded, plain = load("smollm2-135m"), load("smollm2-135m").model
    engine = LocalEngine(loaded.model, loaded.tokenizer, lora=loaded.lora, end_ids=NEVER, threads=THREADS)
    observation = ChatFormat(engine.tokenizer).extend([], OBSERVATION)
    for turns, length in ((1, 32), (4, 32)):
        asyncio.run(engine.publish())  # forgets the rounds before
        rounds = cold_rounds(engine, 8, 1, 300)
        lengths = [[length] * turns for _ in range(8)]
        others = {"transformers.generate": run_generate, "generate, cache kept": run_generate_with_cache}
        found = side_by_side(
            {"engine": partial(run_ours, engine, rounds, lengths)}
            | {name: beside(engine, partial(run, plain, rounds, lengths, observation)) for name, run in others.items()},
            8 * turns * length,
            f"Sampling: SmolLM2-135M, 8 conversations of {turns} x {length} tokens, a prompt of {len(rounds[0][0])}",
        )
    begin = time.perf_counter()
    asyncio.run(engine.publish())
    print(f"publishing new weights, once an iteration: {time.perf_counter() - begin:.2f} s")
    return found


PARTS: dict[str, Callable[[], object]] = {
    "sampling": sampling,
    "update": update,
    "prompts": prompts,
    "trl": trl,
    "growth": growth,
    "memory": memory,
    "smollm2": smollm2,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["memory-of"]:
        memory_of(int(sys.argv[2]), int(sys.argv[3]))
    else:
        print(f"torch {torch.__version__}, {THREADS} threads")
        torch.set_num_threads(1)  # this thread only waits
        for part in sys.argv[1:] or PARTS:
            PARTS[part]()
