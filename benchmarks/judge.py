"""What a judge behind HTTP adds to an iteration: `python benchmarks/judge.py [--median 25] [--latency 1.5]`.

Both sides wait for the same rollouts, whose lengths are drawn once and slept: 8 tasks, 8 attempts each, log-normal with
the given median in seconds (agent rollouts in containers take minutes; shorter ones make the figure harder to reach).
The judged side asks the offline analyst behind a loopback server, every call delayed by the latency. Paper: 4.1 %.
"""

import argparse
import asyncio
import time
from dataclasses import replace

import numpy as np

from arise.analyst.catalogue import wordings
from arise.analyst.judge import OfflineJudge
from arise.analyst.reflector import OfflineReflector
from arise.config_models import Calls, Endpoint, ModelJudge
from arise.models.cases import read_cases
from arise.models.client import Client
from arise.models.judge import LanguageModelJudge
from arise.models.spend import Purse
from arise.models.store import Store
from arise.ports import Judge
from arise.rollouts.assessment import EachRollout
from arise.testing import Expert, FakeLLM
from arise.train import assess
from arise.types import Group, Pair, Pool, Rollout, Rubric, Skill

TASKS, GROUP = 8, 8


def pool() -> Pool:
    """All twenty patterns of the catalogue: two requests a rollout."""
    rubrics = [
        Rubric(f"r{i:03d}", w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)
        for i, w in enumerate(wordings().values(), start=1)
    ]
    return Pool(tuple(Pair(rubric, Skill("")) for rubric in rubrics), 1, len(rubrics))


async def rolled_out(index: int, seconds: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Group:
    """A group whose attempts take this long; every trace is different, so that nothing is answered from the record."""
    cases = read_cases().rollouts
    task, rollout = cases[index % len(cases)]

    async def attempt(number: int) -> Rollout:
        await asyncio.sleep(float(seconds[number]))
        trajectory = rollout.trajectory
        first = replace(trajectory.turns[0], reasoning=f"attempt {number} of group {index}")
        return replace(rollout, trajectory=replace(trajectory, turns=(first, *trajectory.turns[1:])))

    return Group(task, tuple(await asyncio.gather(*map(attempt, range(GROUP)))), GROUP)


async def iteration(
    judge: Judge | None, durations: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> tuple[float, int]:
    """Seconds from the first rollout to the last verdict, and how many verdicts there were."""
    started = time.perf_counter()
    pending = [asyncio.create_task(rolled_out(i, durations[i])) for i in range(TASKS)]
    groups = await assess(EachRollout(judge) if judge else None, pending, pool())
    verdicts = sum(len(r.judgment.verdicts) for group in groups for r in group.rollouts if r.judgment)
    return time.perf_counter() - started, verdicts


async def main(median: float, latency: float) -> None:
    durations = np.random.default_rng(7).lognormal(np.log(median), 0.35, (TASKS, GROUP))
    plain, _ = await iteration(None, durations)
    script = Expert(OfflineJudge(), OfflineReflector(), pool().rubrics)
    async with FakeLLM(script, latency=latency) as fake:
        endpoint, calls, store = Endpoint(model="expert", base_url=fake.base_url), Calls(), Store()
        client = Client(endpoint, calls, store, Purse(store), purpose="judge")
        judge = LanguageModelJudge(client, ModelJudge(endpoint=endpoint, calls=calls))
        judged, verdicts = await iteration(judge, durations)
        await client.close()
        requests = len(fake.asks)
    print(f"rollouts      {TASKS} x {GROUP}, median {np.median(durations):.1f} s, longest {durations.max():.1f} s")
    print(f"outcome only  {plain:.2f} s an iteration")
    print(f"with a judge  {judged:.2f} s, {requests} requests of {latency} s, {verdicts} verdicts")
    print(f"overhead      {judged / plain - 1:.2%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--median", type=float, default=25.0)
    parser.add_argument("--latency", type=float, default=1.5)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.median, arguments.latency))
