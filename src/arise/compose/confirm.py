"""Confirm findings of the detectors with a model judge: filter, cost estimate, hard cap, then judge calls."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arise.analyze.analysis import Analysis, Collected, JudgeFacts, analysis_of
from arise.analyze.behaviours import Behaviour, Evidences, Sighting
from arise.analyze.found import Found
from arise.analyze.judging import Answered, Question, ask, likely_tokens, most_tokens, question_of, with_miss
from arise.compose.analyze import Inputs, behaviours, detect
from arise.config.llm import EndpointConfig
from arise.llm.client.client import Client
from arise.llm.client.spend import cost
from arise.run.calls import Usage
from arise.text.numbers import percent

FLIGHTS = 8
"""Maximum concurrent requests; each keeps one trajectory in memory."""
SAMPLE = 20
"""Attempts judged again for agreement."""
ATTEMPTS = 2
"""Transport attempts per request; each may be billed, so the cap reserves the cost of all of them."""


@dataclass(frozen=True)
class JudgePlan:
    """What to ask the judge (flagged findings only, or every behaviour) and the cost cap."""

    endpoint: EndpointConfig
    cap: float
    everything: bool = False
    repeat: int = 1

    def price(self, usage: Usage) -> int:
        """Return the cost in nano-dollars; 0 if the price is unknown, which is only possible without a cap."""
        stated = {self.endpoint.model: self.endpoint.price} if self.endpoint.price else {}
        return cost(self.endpoint.model, self.endpoint.base_url, usage, stated) or 0

    def asked(self, sightings: Sequence[Sighting], catalogue: Sequence[Behaviour]) -> list[Behaviour]:
        """Return the behaviours to ask about: those that a detector flagged in this attempt, or all."""
        if self.everything:
            return list(catalogue)
        flagged = {sighting.behaviour for sighting in sightings if sighting.present}
        return [behaviour for behaviour in catalogue if behaviour.id in flagged]


@dataclass
class _Ledger:
    """Reserved cost and counts of requests in progress."""

    plan: JudgePlan
    spent: Callable[[], int]
    held: int = 0
    asked: int = 0
    judged: int = 0
    confirmed: int = 0
    refuted: int = 0
    dropped: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)

    def reserve(self, most: int) -> bool:
        """Reserve the maximum cost of a request with all its retries; return False if it could exceed the cap."""
        if self.plan.cap and self.spent() + self.held + most > self.plan.cap * 1e9:
            return False
        self.held += most
        return True

    def count(self, answered: Answered) -> None:
        self.dropped += answered.dropped
        self.confirmed += sum(sighting.present for sighting in answered.sightings)
        self.refuted += sum(not sighting.present for sighting in answered.sightings)
        if answered.sightings or not answered.absent:
            self.judged += 1
        else:
            self.unjudged[answered.absent[0][1]] += 1


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of judging the flagged attempts."""

    requests: int
    tokens: int
    usd: float

    def __str__(self) -> str:
        return f"{self.requests:,} requests, {self.tokens:,} tokens, ${self.usd:.4f}"


def estimate(paths: Sequence[Path], inputs: Inputs, plan: JudgePlan) -> Estimate:
    """Read every attempt once and estimate the size of every request."""
    catalogue, requests, tokens, nano = behaviours(), 0, 0, 0
    for found in inputs.scan(paths):
        asked = plan.asked(_seen(found), catalogue)
        question = question_of(found, asked, plan.endpoint) if asked and found.trajectory.turns else ""
        if isinstance(question, Question):
            usage = likely_tokens(question)
            requests, tokens = requests + 1, tokens + usage.prompt_tokens + usage.completion_tokens
            nano += plan.price(usage)
    return Estimate(requests, tokens, nano / 1e9)


def _seen(found: Found) -> Sequence[Sighting]:
    try:
        return detect(found) if found.trajectory.turns else ()
    except Exception:  # a failing detector must not end the scan, as in `Collected.add`
        return ()


async def confirm(
    paths: Sequence[Path],
    inputs: Inputs,
    plan: JudgePlan,
    client: Client,
    spent: Callable[[], int],
    expected: Estimate,
    progress: Callable[[int], None] = lambda _done: None,
) -> Analysis:
    """Read every attempt, ask the judge about flagged behaviours, and count only those with a verdict.

    `progress` gets the number of attempts that the judge was asked about.
    """
    scan, catalogue = inputs.scan(paths), behaviours()
    collected, ledger = Collected(evidences=Evidences(inputs.seed)), _Ledger(plan, spent)
    pairs: list[tuple[Sequence[Sighting], Sequence[Sighting]]] = []
    waiting: set[asyncio.Task[None]] = set()

    async def one(found: Found, offline: Sequence[Sighting], asked: list[Behaviour]) -> None:
        answered = await _ask(client, ledger, found, asked, "")
        progress(ledger.judged + ledger.unjudged.total())
        settled = _merged(offline, answered, asked)
        absent = {name for name, _ in answered.absent}
        names = frozenset(behaviour.id for behaviour in asked)
        unjudged = frozenset(absent) if answered.sightings or not absent else names
        collected.keep(found, settled, unjudged, names)
        for number in range(1, plan.repeat if len(pairs) < SAMPLE and answered.sightings else 1):
            again = await _ask(client, ledger, found, asked, f"repeat {number}", counted=False)
            pairs.append((answered.sightings, again.sightings))

    for found in scan:
        collected.notes.update(found.notes)
        offline = _seen(found)
        asked = plan.asked(offline, catalogue) if found.trajectory.turns else []
        if not asked:
            collected.keep(found, offline)
            continue
        waiting.add(asyncio.create_task(one(found, offline, asked)))
        if len(waiting) >= FLIGHTS:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            _ = [task.result() for task in done]
    if waiting:
        _ = await asyncio.gather(*waiting)
    return analysis_of(scan, collected, catalogue, inputs.seed, _facts(ledger, client, expected, pairs))


async def _ask(
    client: Client, ledger: _Ledger, found: Found, asked: Sequence[Behaviour], salt: str, *, counted: bool = True
) -> Answered:
    question = question_of(found, asked, ledger.plan.endpoint, salt)
    if isinstance(question, str):
        answered = Answered(absent=((asked[0].id, question),))
    else:
        most = ATTEMPTS * ledger.plan.price(most_tokens(question, ledger.plan.endpoint))
        if ledger.reserve(most):
            ledger.asked += 1
            try:
                answered = await ask(client, question, found)
            finally:
                ledger.held -= most
        else:
            answered = Answered(absent=tuple((behaviour.id, "budget reached") for behaviour in asked))
    if counted:
        ledger.count(answered)
    return answered


def _merged(offline: Sequence[Sighting], answered: Answered, asked: Sequence[Behaviour]) -> list[Sighting]:
    """Return the judge's verdicts on `asked` and the detectors' on the rest; drop asked behaviours without verdict."""
    before = {sighting.behaviour: sighting for sighting in offline}
    names = {behaviour.id for behaviour in asked}
    settled = [with_miss(sighting, before.get(sighting.behaviour)) for sighting in answered.sightings]
    return settled + [sighting for sighting in offline if sighting.behaviour not in names]


def _facts(
    ledger: _Ledger, client: Client, expected: Estimate, pairs: Sequence[tuple[Sequence[Sighting], Sequence[Sighting]]]
) -> JudgeFacts:
    same = total = 0
    for first, second in pairs:
        other = {sighting.behaviour: sighting.present for sighting in second}
        shared = [sighting for sighting in first if sighting.behaviour in other]
        total += len(shared)
        same += sum(sighting.present == other[sighting.behaviour] for sighting in shared)
    agreement = f"{same:,} of {total:,} repeated verdicts agree ({percent(same / total)})" if total else ""
    return JudgeFacts(
        client.endpoint.model, ledger.asked, ledger.judged, dict(ledger.unjudged), ledger.confirmed, ledger.refuted,
        ledger.dropped, ledger.spent() / 1e9, ledger.plan.cap, str(expected), agreement,
    )  # fmt: skip
