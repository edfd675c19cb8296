"""Behaviours in attempts: the data kept of each attempt, and a few quotes per behaviour."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heappushpop

from arise.analyze.found import Found, Triage
from arise.analyze.quotes import place_of, quote_from
from arise.rollouts.discretion import redacted_turn
from arise.text.secrets import redact
from arise.types import Capability, Turn

KEPT = 8
"""Candidate quotes kept per behaviour and outcome, so that three of different tasks can be shown."""
AROUND = 2
"""Turns shown before and after a quoted turn."""
LONGEST_TEXT = 4000


@dataclass(frozen=True)
class Behaviour:
    """A recurring behaviour of an agent — `Behaviour("P02", "...", Capability.VERIFICATION, ...)`."""

    id: str
    name: str
    capability: Capability
    issue_tag: str
    criterion: str
    condition: str
    rule: str
    misses: Mapping[str, str]
    """A description of each way to fail."""
    skill: str
    advice: Mapping[str, str]
    """Guidance against each way to fail."""


@dataclass(frozen=True)
class Sighting:
    """A verdict on one behaviour in one attempt; `turn` 0 means the whole attempt."""

    behaviour: str
    present: bool
    miss: str = ""
    detail: str = ""
    turn: int = 0
    quote: str = ""
    also: tuple[int, ...] = ()
    """Further turns that show it."""


Detect = Callable[[Found], Sequence[Sighting]]
"""The detector port: return the applicable behaviours of one attempt. Must not read its outcome."""


@dataclass(frozen=True, slots=True)
class AnalysedAttempt:
    """The data kept of each attempt; its size does not depend on the length of the trajectory."""

    source: str
    form: str
    task_id: str
    checksum: str
    group: str
    model: str
    triage: Triage
    passed: bool | None
    reward: float | None
    reason: str
    turns: int
    present: Mapping[str, bool]
    """The verdict on every applicable behaviour."""
    places: Mapping[str, int] = field(default_factory=dict)
    """The turn that shows each present behaviour."""
    unjudged: frozenset[str] = frozenset()
    """Behaviours that a judge was asked about without giving a usable verdict: neither present nor absent."""
    asked: frozenset[str] = frozenset()
    """Behaviours that a model judge was asked about."""

    @property
    def counts(self) -> bool:
        """Return whether its outcome counts in the comparison of failures and passes."""
        return self.triage is Triage.VALID and self.passed is not None


@dataclass(frozen=True)
class Evidence:
    """One quoted sighting with the turns around it, redacted: `turns[0]` is turn number `first`."""

    behaviour: str
    source: str
    task_id: str
    passed: bool | None
    turn: int
    quote: str
    detail: str
    miss: str
    instruction: str
    first: int
    turns: tuple[Turn, ...]

    @property
    def id(self) -> str:
        """Return a short id that is the same in every report on the same input."""
        return "e" + blake2b(f"{self.source}\0{self.behaviour}".encode(), digest_size=5).hexdigest()


@dataclass
class Evidences:
    """Keep a few quotes per behaviour and outcome, selected by digest, independent of reading order."""

    seed: int = 0
    heaps: dict[tuple[str, bool | None], list[tuple[float, str, Evidence]]] = field(default_factory=dict)
    without_quote: int = 0

    def offer(self, found: Found, sightings: Iterable[Sighting]) -> None:
        """Offer the sightings of an attempt; quote and redact only those that may be kept."""
        for sighting in sightings:
            if not sighting.present:
                continue
            heap = self.heaps.setdefault((sighting.behaviour, found.outcome.passed), [])
            lot = -self._lot(found, sighting.behaviour)
            if len(heap) >= KEPT and lot <= heap[0][0]:
                continue
            evidence = evidence_of(found, sighting)
            if evidence is None:
                self.without_quote += 1
                continue
            entry = (lot, found.source, evidence)
            heappush(heap, entry) if len(heap) < KEPT else heappushpop(heap, entry)

    def _lot(self, found: Found, behaviour: str) -> float:
        key = f"{self.seed}\0{behaviour}\0{found.source}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=7).digest(), "big") / 2**56

    def of(self, behaviour: str, passed: bool | None, most: int, miss: str = "") -> list[Evidence]:
        """Return up to `most` quotes, those of one way of failing first, preferring different tasks."""
        heap = sorted(
            self.heaps.get((behaviour, passed), []),
            key=lambda entry: (entry[2].miss != miss, -entry[0], entry[1]),
        )
        fresh: dict[str, Evidence] = {}
        for _, _, evidence in heap:
            fresh.setdefault(evidence.task_id, evidence)
        chosen = list(fresh.values())
        chosen += [evidence for _, _, evidence in heap if evidence not in chosen]
        return chosen[:most]


def evidence_of(found: Found, sighting: Sighting) -> Evidence | None:
    """Return a sighting with its quote and the turns around it; None if no turn of the agent shows it."""
    turns = found.trajectory.turns
    place = place_of(found.trajectory, sighting.turn)
    if not place:
        return None
    quote = sighting.quote or quote_from(turns[place - 1], sighting.detail)
    if not quote:
        return None
    first = max(1, place - AROUND)
    return Evidence(
        sighting.behaviour, found.source, found.task.id, found.outcome.passed, place, quote,
        redact(sighting.detail), sighting.miss, redact(found.task.instruction[:LONGEST_TEXT]), first,
        tuple(_shortened(redacted_turn(turn), quote) for turn in turns[first - 1 : place + AROUND]),
    )  # fmt: skip


def _shortened(turn: Turn, quote: str) -> Turn:
    """Shorten the texts of a turn around the quote, which stays whole."""
    from dataclasses import replace

    def cut(text: str) -> str:
        if len(text) <= LONGEST_TEXT:
            return text
        at = max(0, text.find(quote) - LONGEST_TEXT // 2)
        before, after = "[...] " if at else "", " [...]" if at + LONGEST_TEXT < len(text) else ""
        return f"{before}{text[at : at + LONGEST_TEXT]}{after}"

    def cut_value(value: object) -> object:
        if isinstance(value, str):
            return cut(value)
        if isinstance(value, Mapping):
            return {key: cut_value(item) for key, item in value.items()}
        return [cut_value(item) for item in value] if isinstance(value, list) else value

    calls = tuple(
        replace(call, arguments={name: cut_value(value) for name, value in call.arguments.items()})
        for call in turn.calls
    )
    seen = tuple(replace(observation, text=cut(observation.text)) for observation in turn.observations)
    return Turn(cut(turn.text), calls, seen, cut(turn.reasoning))


def attempt_of(
    found: Found,
    sightings: Sequence[Sighting],
    unjudged: frozenset[str] = frozenset(),
    asked: frozenset[str] = frozenset(),
) -> AnalysedAttempt:
    """Return the data to keep of an attempt."""
    return AnalysedAttempt(
        found.source, found.form, found.task.id, found.checksum, found.group, found.model,
        found.outcome.triage, found.outcome.passed, found.outcome.reward, redact(found.outcome.reason),
        len(found.trajectory.turns), {s.behaviour: s.present for s in sightings},
        {s.behaviour: place_of(found.trajectory, s.turn) for s in sightings if s.present}, unjudged, asked,
    )  # fmt: skip
