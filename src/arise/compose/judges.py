"""The judge and the reflector of a run, chosen by its configuration: none, offline analyst, model or custom class.

Part of the composition root. Calls to a model are recorded in the run folder: replies in `calls.db`, events in
`calls.jsonl`.
"""

import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from arise.analyst import OfflineJudge, OfflineReflector
from arise.analyst.catalogue import wordings
from arise.compose.imports import imported
from arise.config import Config, Imported, OfflineJudging
from arise.config.llm import EndpointConfig, FakeJudging, ModelJudge, ModelReflector, PriceConfig
from arise.errors import AriseError, Exit
from arise.llm.client.client import Client, Observe
from arise.llm.client.spend import Budget
from arise.llm.first_call.first_call import first_call
from arise.llm.first_call.needs import expected_of_run, run_needs
from arise.llm.first_call.served import price_text
from arise.llm.judge.judge import LanguageModelJudge
from arise.llm.judge.majority import Majority
from arise.llm.judge.meter import Meter
from arise.llm.reflection.reflector import LanguageModelReflector
from arise.ports import Judge, Reflector
from arise.run.calls import Store
from arise.testing import Expert, FakeLLM
from arise.text.secrets import redact
from arise.types import Rubric

log = logging.getLogger(__name__)
Calling = TypeVar("Calling", ModelJudge, ModelReflector)
_TOLD = ("degraded", "recovered", "changed", "internal", "nothing")


@dataclass(frozen=True)
class Judging:
    """Judge and reflector of a run, their shared budget and meter; None for each that is not configured."""

    judge: Judge | None = None
    reflector: Reflector | None = None
    budget: Budget | None = None
    meter: Meter | None = None


class _Session:
    """State shared by judge and reflector of one run: the record of calls, opened for the first client."""

    def __init__(self, config: Config, folder: Path, again: bool, stack: AsyncExitStack) -> None:
        self.config, self.folder, self.again, self.stack = config, folder, again, stack
        self.budget: Budget | None = None
        self.meter: Meter | None = None

    @cached_property
    def calls(self) -> tuple[Store, Budget, Observe]:
        store = Store(self.folder / "calls.db")
        self.stack.callback(store.close)
        self.budget, self.meter = Budget(store, self.config.budget), Meter()
        return store, self.budget, observer(self.folder, self.meter)

    def client(self, chosen: ModelJudge | ModelReflector, purpose: str) -> Client:
        """Return a client that is closed at the end of the session."""
        store, budget, observe = self.calls
        allow = chosen.allow_change if isinstance(chosen, ModelJudge) else ()
        client = Client(
            chosen.endpoint, chosen.calls, store, budget, purpose=purpose, allow_change=allow, observe=observe
        )
        self.stack.push_async_callback(client.close)
        return client

    async def checked(self, chosen: Calling, purpose: str) -> Calling:
        """Return the settings as the endpoint can serve them; raise if it cannot work. Log what was found."""
        store, budget, _ = self.calls
        needs = run_needs(self.config)
        served = await first_call(chosen.endpoint, store, budget, purpose, needs, again=self.again)
        price = budget.price(chosen.endpoint, served.tokens)
        log.info("%s: %s", purpose, served.line(chosen.endpoint, needs, price_text(chosen.endpoint, price)))
        if isinstance(chosen, ModelJudge) and not served.unchecked:
            log.info("expected per iteration: %s", expected_of_run(served, chosen, self.config, budget))
        return chosen.model_copy(update={"endpoint": served.applied(chosen.endpoint)})

    def model_judge(self, chosen: ModelJudge) -> Judge:
        client, seed = self.client(chosen, "judge"), self.config.train.seed
        salts = [str(seed), *(f"{seed} vote {number}" for number in range(2, chosen.votes + 1))]
        votes = [LanguageModelJudge(client, chosen, observe=self.calls[2], salt=salt) for salt in salts]
        return votes[0] if len(votes) == 1 else Majority(votes)

    def model_reflector(self, chosen: ModelReflector) -> Reflector:
        client = self.client(chosen, "reflection")
        return LanguageModelReflector(client, chosen, observe=self.calls[2], salt=str(self.config.train.seed))


async def _offline(session: _Session, chosen: OfflineJudging) -> Judging:
    judge = OfflineJudge(seed=session.config.train.seed, flip_rate=chosen.flip_rate, miss_rate=chosen.miss_rate)
    return Judging(judge, OfflineReflector())


async def _model(session: _Session, chosen: ModelJudge) -> Judging:
    chosen = await session.checked(chosen, "judge")
    judge = session.model_judge(chosen)
    if session.config.reflector.kind != "judge":
        return Judging(judge)
    return Judging(judge, session.model_reflector(ModelReflector(endpoint=chosen.endpoint, calls=chosen.calls)))


async def _fake(session: _Session, chosen: FakeJudging) -> Judging:
    expert = Expert(OfflineJudge(seed=session.config.train.seed), OfflineReflector(), analyst_rubrics())
    fake = await session.stack.enter_async_context(FakeLLM(expert, latency=chosen.latency))
    endpoint = EndpointConfig(model="offline-analyst", base_url=fake.base_url, price=PriceConfig(input=0.0, output=0.0))
    judge = ModelJudge(
        endpoint=endpoint, calls=chosen.calls, rubrics_per_call=chosen.rubrics_per_call, reasons=chosen.reasons
    )
    reflector = ModelReflector(endpoint=endpoint, calls=chosen.calls)
    return Judging(session.model_judge(judge), session.model_reflector(reflector))


async def _imported_judge(session: _Session, chosen: Imported) -> Judging:
    """Construct a custom judge, which is also the reflector if it has the methods of one."""
    config = session.config
    judge: Any = imported("judge", chosen, seed=config.train.seed)
    lacking = [name for name in ("propose", "rewrite") if not callable(getattr(judge, name, None))]
    if lacking and config.reflector.kind == "judge" and config.pool.evolves:
        raise AriseError(
            "config",
            Exit.CONFIG,
            f"reflector.kind = 'judge', but the judge {chosen.path} has no method {lacking[0]} and cannot reflect",
            "nothing was started",
            "set reflector.kind to 'offline', 'model' or 'import', or pool.evolves = false",
        )
    return Judging(judge, None if lacking else judge)


async def _nobody(session: _Session, chosen: object) -> Judging:  # noqa: ARG001
    return Judging()


JUDGES: dict[str, Callable[[_Session, Any], Awaitable[Judging]]] = {
    "offline": _offline,
    "none": _nobody,
    "model": _model,
    "fake": _fake,
    "import": _imported_judge,
}
"""Each returns the judge, and its reflector for `reflector.kind = "judge"`."""


async def _same(session: _Session, found: Judging) -> Reflector | None:  # noqa: ARG001
    return found.reflector


async def _offline_reflector(session: _Session, found: Judging) -> Reflector | None:  # noqa: ARG001
    return OfflineReflector()


async def _model_reflector(session: _Session, found: Judging) -> Reflector | None:  # noqa: ARG001
    assert isinstance(session.config.reflector, ModelReflector)
    return session.model_reflector(await session.checked(session.config.reflector, "reflection"))


async def _imported_reflector(session: _Session, found: Judging) -> Reflector | None:  # noqa: ARG001
    assert isinstance(session.config.reflector, Imported)
    made: Reflector = imported("reflector", session.config.reflector, seed=session.config.train.seed)
    return made


REFLECTORS: dict[str, Callable[[_Session, Judging], Awaitable[Reflector | None]]] = {
    "judge": _same,
    "offline": _offline_reflector,
    "model": _model_reflector,
    "import": _imported_reflector,
}


@asynccontextmanager
async def judging(config: Config, folder: Path, *, again: bool = False) -> AsyncIterator[Judging]:
    """Open judge and reflector of a run; at exit, record every paid reply and close every client.

    Raise if an endpoint is unusable; `again` repeats the test call that an earlier process made.
    """
    async with AsyncExitStack() as stack:
        session = _Session(config, folder, again, stack)
        found = await JUDGES[config.judge.kind](session, config.judge)
        reflector = await REFLECTORS[config.reflector.kind](session, found) if found.judge else None
        yield Judging(found.judge, reflector, session.budget, session.meter)


def reference_judge() -> Judge:
    """Return the judge that `arise judge check` compares another judge with: the offline analyst."""
    return OfflineJudge()


def analyst_rubrics() -> list[Rubric]:
    """Return the analyst's rubrics; the fake endpoint matches them by the rules in a judge's prompt."""
    return [
        Rubric(pattern_id, w.criterion, w.pattern.issue_tag, w.pattern.capability, w.applies, w.rule)
        for pattern_id, w in wordings().items()
    ]


def observer(folder: Path, meter: Meter | None = None) -> Observe:
    """Append every event to the run's record of calls, count it, and log those that the user must see."""
    path = folder / "calls.jsonl"

    def observe(name: str, fields: Mapping[str, object]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(redact(json.dumps({"at": time.time(), "event": name, **fields}, default=str)) + "\n")
        if meter:
            meter.take(name, fields)
        if name.rpartition(".")[2] in _TOLD:
            log.warning("%s", redact(f"{name}: {fields.get('reason') or dict(fields)}"))

    return observe
