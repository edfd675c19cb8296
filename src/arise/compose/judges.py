"""Who judges and who reflects in a run, chosen by its configuration: nobody, the analyst, a model, or a fake of one.

Part of the composition root. Calls to a model are recorded in the run folder: replies in `calls.db`, what happened in
`calls.jsonl`.
"""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from arise.analyst import OfflineJudge, OfflineReflector
from arise.analyst.catalogue import wordings
from arise.config import Config, OfflineJudging
from arise.config.llm import EndpointConfig, FakeJudging, ModelJudge, ModelReflector, PriceConfig
from arise.llm.client import Client, Observe
from arise.llm.first_call import first_call
from arise.llm.judge import LanguageModelJudge
from arise.llm.meter import Meter
from arise.llm.reflector import LanguageModelReflector
from arise.llm.spend import Budget
from arise.ports import Judge, Reflector
from arise.run.calls import Store
from arise.testing import Expert, FakeLLM
from arise.text.secrets import redact
from arise.types import Rubric

Tell = Callable[[str], None]
_TOLD = ("degraded", "recovered", "changed", "quarantined", "internal", "nothing")


@dataclass(frozen=True)
class Judging:
    """The two models of a run, the budget they share and how the judge is doing; None where there is none."""

    judge: Judge | None = None
    reflector: Reflector | None = None
    budget: Budget | None = None
    meter: Meter | None = None


@asynccontextmanager
async def judging(config: Config, folder: Path, tell: Tell, *, again: bool = False) -> AsyncIterator[Judging]:
    """Judge and reflector for as long as a run lasts; at its end every paid reply is recorded, every socket closed.

    An endpoint that cannot be used is refused here; `again` asks it also where an earlier process did.
    """
    chosen = config.judge
    if isinstance(chosen, OfflineJudging):
        seed = config.train.seed
        yield Judging(
            OfflineJudge(seed=seed, flip_rate=chosen.flip_rate, miss_rate=chosen.miss_rate), OfflineReflector()
        )
    elif isinstance(chosen, ModelJudge):
        endpoints = [chosen.endpoint, *([config.reflector.endpoint] if config.reflector.kind == "model" else [])]
        async with _models(config, chosen, folder, tell, endpoints, again) as found:
            yield found
    elif isinstance(chosen, FakeJudging):
        expert = Expert(OfflineJudge(seed=config.train.seed), OfflineReflector(), analyst_rubrics())
        async with FakeLLM(expert, latency=chosen.latency) as fake:
            endpoint = EndpointConfig(
                model="offline-analyst", base_url=fake.base_url, price=PriceConfig(input=0.0, output=0.0)
            )
            settings = ModelJudge(endpoint=endpoint, calls=chosen.calls, rubrics_per_call=chosen.rubrics_per_call)
            async with _models(config, settings, folder, tell) as found:
                yield found
    else:
        yield Judging()


def reference_judge() -> Judge:
    """Return the judge that `arise judge check` compares another judge with: the offline analyst."""
    return OfflineJudge()


def analyst_rubrics() -> list[Rubric]:
    """The analyst's rubrics: a judge's prompt carries only their rules, and by these the expert finds them."""
    return [
        Rubric(pattern_id, w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)
        for pattern_id, w in wordings().items()
    ]


@asynccontextmanager
async def _models(
    config: Config,
    chosen: ModelJudge,
    folder: Path,
    tell: Tell,
    to_try: Sequence[EndpointConfig] = (),
    again: bool = False,
) -> AsyncIterator[Judging]:
    """The two clients around one record of calls; the endpoints `to_try` answer a first call before."""
    reflection = config.reflector
    if not isinstance(reflection, ModelReflector):
        reflection = ModelReflector(endpoint=chosen.endpoint, calls=chosen.calls)
    store = Store(folder / "calls.db")
    try:
        budget = Budget(store, config.budget)
        for purpose, endpoint in zip(("judge", "reflection"), to_try, strict=False):
            await first_call(endpoint, store, budget, purpose, again=again)
        meter = Meter()
        observe = observer(folder, tell, meter)
        salt = str(config.train.seed)
        judges = Client(
            chosen.endpoint,
            chosen.calls,
            store,
            budget,
            purpose="judge",
            allow_change=chosen.allow_change,
            observe=observe,
        )
        reflects = Client(reflection.endpoint, reflection.calls, store, budget, purpose="reflection", observe=observe)
        try:
            yield Judging(
                LanguageModelJudge(judges, chosen, observe=observe, salt=salt),
                LanguageModelReflector(reflects, reflection, observe=observe, salt=salt),
                budget,
                meter,
            )
        finally:
            await judges.close()
            await reflects.close()
    finally:
        store.close()


def observer(folder: Path, tell: Tell, meter: Meter | None = None) -> Observe:
    """Append every event to the run's log of calls, count it, and tell a person about those that matter."""
    path = folder / "calls.jsonl"

    def observe(name: str, fields: Mapping[str, object]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(redact(json.dumps({"at": time.time(), "event": name, **fields}, default=str)) + "\n")
        if meter:
            meter.take(name, fields)
        if name.rpartition(".")[2] in _TOLD:
            tell(redact(f"{name}: {fields.get('reason') or dict(fields)}"))

    return observe
