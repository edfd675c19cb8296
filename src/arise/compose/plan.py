"""`arise plan`: choose the fleet, measure what can be measured, forecast."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, pstdev

import numpy as np
import psutil

from arise.config import Config, PolicyConfig, WorldTasks
from arise.config.engine import TrainerSettings
from arise.config.llm import ModelJudge
from arise.errors import AriseError, Exit
from arise.plan.forecast import FleetSize, Forecast, best_layout, forecast, sweep
from arise.plan.hardware import CPU_BANDWIDTH, CPU_FLOPS, GPUS, Gpu, gpu_named
from arise.plan.judging import JudgeForecast, judging
from arise.plan.layout import Layout, divide, lora_share
from arise.plan.shapes import shape_of
from arise.plan.speed import Speeds
from arise.plan.workload import Assumptions, Workload, assume, workload_of
from arise.ports import Engine
from arise.run.reader import RunReader
from arise.types import Example, LossSpec, OptimSpec, SamplingParams, Segment, Tokens

NEWEST = 64
FEW, MANY, PROBE_TOKENS = 1, 16, 64
WORLD = Assumptions(
    turns=6, generated=60, observed=160, prompt=240, spread=0.3, tool_seconds=0.05, start_seconds=0.05,
    verify_seconds=0.1, judge_seconds=0.01, reflect_seconds=0.5, decode_overhead=0.002, update_overhead=0.0,
)  # fmt: skip
"""Rollouts of the embedded world with the offline analyst."""
THIS_MACHINE = Gpu("cpu", psutil.virtual_memory().total, CPU_FLOPS, CPU_BANDWIDTH, CPU_BANDWIDTH)


@dataclass(frozen=True)
class PlanOptions:
    """The options of `arise plan`; empty or 0 where the user gave none."""

    gpu: str = ""
    gpus: int = 0
    servers: int = 0
    tensor_parallel: int = 0
    assume: tuple[str, ...] = ()
    run: Path | None = None
    probe: bool = False


@dataclass(frozen=True)
class Planned:
    """A forecast with its assumptions."""

    forecast: Forecast
    judging: JudgeForecast | None
    assumed: Assumptions


def plan(config: Config, request: PlanOptions) -> Planned:
    """Forecast the run on the requested fleet, by default on the one that the configuration describes."""
    assumed = assumed_for(config, request)
    if request.probe:
        measured = probe(config).speeds_for(workload_of(config, assumed))
        found = forecast(config, _one_device(config, THIS_MACHINE), assumed, measured)
    else:
        found = forecast(config, layout_for(config, request, assumed), assumed)
    return Planned(found, judging(config, found.work, assumed), assumed)


def sizes(config: Config, request: PlanOptions, counts: str) -> Iterator[FleetSize]:
    """Compare fleets of the given sizes, with the batch as configured and grown with the fleet."""
    numbers = [text.strip() for text in counts.split(",")]
    if not all(number.isdigit() and int(number) for number in numbers):
        raise _bad(f"--sweep {counts}: not a list of numbers of GPUs", "write --sweep 8,32,256")
    assumed, gpu = assumed_for(config, request), _gpu(request)
    for grow in (False, True):
        yield from sweep(config, gpu, sorted(map(int, numbers)), assumed, grow)


def assumed_for(config: Config, request: PlanOptions) -> Assumptions:
    """Return the defaults for the kind of tasks, then what the run measured, then what the user assumes."""
    base = WORLD if isinstance(config.tasks, WorldTasks) else Assumptions()
    if not isinstance(config.judge, ModelJudge):
        base = replace(base, judge_seconds=WORLD.judge_seconds, reflect_seconds=WORLD.reflect_seconds)
    return assume(list(request.assume), assumptions_of(request.run, base) if request.run else base)


def layout_for(config: Config, request: PlanOptions, assumed: Assumptions) -> Layout:
    """Return the layout that the options ask for, else the one of section `[policy]`."""
    policy = config.policy
    if request.gpus or request.servers or request.tensor_parallel:
        return _requested(config, request, assumed)
    if isinstance(policy, PolicyConfig):
        on_cpu = policy.device == "cpu" and not request.gpu
        return _one_device(config, THIS_MACHINE if on_cpu else _gpu(request))
    if isinstance(policy, TrainerSettings):
        servers = len(policy.sampler.addresses) or policy.sampler.servers
        rows = re.search(r"c(\d+)", getattr(policy, "backend", ""))
        return Layout(_gpu(request), servers, policy.sampler.gpus, policy.processes, int(rows[1]) if rows else 1)
    raise _bad(f"policy.kind = {policy.kind!r} does not say how many GPUs it uses", "add --gpu h100 --gpus 8")


def _requested(config: Config, request: PlanOptions, assumed: Assumptions) -> Layout:
    gpu, gpus, width = _gpu(request), request.gpus or 8, request.tensor_parallel or 1
    if gpus == 1:
        return _one_device(config, gpu)
    if not request.servers and not request.tensor_parallel:
        return best_layout(config, gpu, gpus, assumed)
    servers = request.servers or max(1, gpus // width // 2)
    if servers * width >= gpus:
        what = f"{servers} servers of {width} GPUs leave none of {gpus} for training"
        raise _bad(what, "give fewer --servers, a smaller --tensor-parallel, or more --gpus")
    shape, work = shape_of(config), workload_of(config, assumed)
    return divide(shape, work, gpu, gpus, lora_share(config, shape), servers * width / gpus, width)


def _one_device(config: Config, gpu: Gpu) -> Layout:
    """Return one device that samples and trains in turn, as the built-in engine does."""
    gib = config.policy.cache_gib if isinstance(config.policy, PolicyConfig) else PolicyConfig().cache_gib
    return Layout(gpu, 1, 1, 1, shared_cache=gib * 2**30)


def _gpu(request: PlanOptions) -> Gpu:
    if not request.gpu:
        raise _bad("no GPU is named", f"add --gpu, one of: {', '.join(sorted(GPUS))}")
    return gpu_named(request.gpu)


def _bad(what: str, remedy: str) -> AriseError:
    return AriseError("plan", Exit.CONFIG, what, "nothing was planned", remedy)


def assumptions_of(run: Path, base: Assumptions) -> Assumptions:
    """Replace the assumptions about rollouts by the means of a run's newest ones."""
    with RunReader.open(run) as reader:
        rows = [row for row in reader.rollouts(limit=NEWEST) if not row.fault]
        stored = [found.whole() for row in rows if (found := reader.trajectory(row.id)) is not None]
    if not stored:
        raise _bad(f"{run} has no rollouts to measure", "name a run with at least one finished iteration")
    last = [rollout.trajectory.rows[-1] for rollout in stored]
    prompts = [int(np.argmax(row.generated_U)) for row in last]
    totals = [len(row.ids_U) for row in last]
    generated = [row.generated_tokens for row in rows]
    lengths = np.log(np.maximum(1, generated))
    prompt, written = mean(prompts), mean(generated)
    return replace(
        base,
        turns=mean(max(1, row.turns) for row in rows),
        generated=written,
        prompt=prompt,
        observed=max(0.0, mean(totals) - prompt - written),
        spread=float(pstdev(lengths)),
    )


@dataclass(frozen=True)
class Probe:
    """Measured on this machine: seconds of a decoding step, per conversation in it, and per trained token."""

    step: float
    each: float
    per_trained_token: float

    def speeds_for(self, work: Workload) -> Callable[[Speeds], Speeds]:
        """Return the function that puts the measured rates in place of the estimated ones."""
        reading = 1 + work.read_per_generated / 10  # a token read in a batch costs about a tenth of one generated
        update = self.per_trained_token * work.rollouts * work.tokens
        return lambda speeds: replace(speeds, step=self.step, each=self.each * reading, update=update, publish=0.0)


def probe(config: Config) -> Probe:
    """Open the configured engine, sample with few and with many conversations, and take one update."""
    return asyncio.run(_probe(config))


async def _probe(config: Config) -> Probe:
    from arise.compose.policies import open_engine  # torch is needed here only
    from arise.compose.trained import for_a_warm_start

    async with for_a_warm_start(config, Path()) as (sandboxes, harness):
        engine = await open_engine(config, sandboxes, harness)
    try:
        prompt = engine.chat.prompt(
            [{"role": "user", "content": "List the files of this folder, then read the notes."}]
        )
        await _sampled(engine, prompt, FEW)  # the first call pays for warming up
        few, _ = await _sampled(engine, prompt, FEW)
        many, segments = await _sampled(engine, prompt, MANY)
        each = max(0.0, (many - few) / (MANY - FEW))
        return Probe(max(0.0, few - each), each, await _trained(engine, prompt, segments))
    finally:
        engine.close()


async def _sampled(engine: Engine, prompt: list[int], conversations: int) -> tuple[float, list[Segment]]:
    """Return the seconds per decoding step with this number of conversations, and what they generated."""
    began = time.perf_counter()
    segments = await asyncio.gather(
        *(
            engine.sample(prompt, SamplingParams(PROBE_TOKENS, seed=n, conversation=f"probe-{conversations}-{n}"))
            for n in range(conversations)
        )
    )
    found = [one[0] for one in segments]
    return (time.perf_counter() - began) / max(1, *(len(segment.ids) for segment in found)), found


async def _trained(engine: Engine, prompt: list[int], segments: list[Segment]) -> float:
    """Return the seconds per token of one update on what was sampled."""
    rows = [_row(prompt, segment) for segment in segments if segment.ids]
    examples = [Example((row,), 1.0 if n % 2 else -1.0) for n, row in enumerate(rows)]
    began = time.perf_counter()
    await engine.train_step(examples, LossSpec(), OptimSpec())
    return (time.perf_counter() - began) / sum(len(row.ids_U) for row in rows)


def _row(prompt: list[int], segment: Segment) -> Tokens:
    given, written = len(prompt), len(segment.ids)
    return Tokens(
        np.array([*prompt, *segment.ids], dtype=np.int64),
        np.array([False] * given + [True] * written),
        np.array([0.0] * given + list(segment.logprobs)),
        np.array([-1] * given + list(segment.versions), dtype=np.int64),
    )
