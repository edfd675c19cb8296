"""One analysis: read everything once, keep little, and hold what every report is made of."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arise.analyze.behaviours import Attempt, Behaviour, Detect, Evidence, Evidences, Sighting, attempt_of
from arise.analyze.found import Found, Triage
from arise.analyze.gaps import Gap, find_gaps
from arise.analyze.scan import Coverage, Scan
from arise.analyze.statistics import Rate

QUOTES = 3


@dataclass(frozen=True)
class JudgeFacts:
    """What a model judge did: how much was asked, answered, dropped and left, and at what price."""

    identity: str
    asked: int
    judged: int
    unjudged: Mapping[str, int]
    """Attempts without a judgment, by reason."""
    confirmed: int
    refuted: int
    dropped_quotes: int
    """Findings dropped because their quote is not in the turn they name."""
    usd: float
    cap: float
    estimate: str
    agreement: str = ""


@dataclass(frozen=True)
class Analysis:
    """Everything that was found; reports add no number of their own."""

    coverage: Coverage
    attempts: tuple[Attempt, ...]
    gaps: tuple[Gap, ...]
    evidence: Mapping[str, tuple[Evidence, ...]]
    """Quotes of failures first (of any attempt where no outcome is known), by behaviour."""
    contrast: Mapping[str, tuple[Evidence, ...]]
    """Quotes of passes that show the behaviour all the same."""
    notes: Mapping[str, int]
    misses: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often each way of failing was seen, by (behaviour, miss)."""
    quotes_missing: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    judge: JudgeFacts | None = None
    seed: int = 0

    @property
    def triage(self) -> Counter[Triage]:
        return Counter(attempt.triage for attempt in self.attempts)

    @property
    def verdicts(self) -> Rate:
        """Passes over attempts that a verifier judged; failures by time limit are among them."""
        judged = [attempt for attempt in self.attempts if attempt.passed is not None]
        return Rate(sum(bool(attempt.passed) for attempt in judged), len(judged))

    @property
    def raw(self) -> Rate:
        """Passes over attempts with any reward on file, as a table of rewards would show it."""
        filed = [attempt for attempt in self.attempts if attempt.reward is not None or attempt.passed is not None]
        return Rate(sum((attempt.reward or 0.0) >= 1.0 - 1e-6 or bool(attempt.passed) for attempt in filed), len(filed))

    @property
    def outcome_known(self) -> int:
        return sum(attempt.passed is not None for attempt in self.attempts)


@dataclass
class Collected:
    """What one pass over the attempts leaves; a judge may correct `attempts` and `evidences` afterwards."""

    attempts: list[Attempt] = field(default_factory=list)
    evidences: Evidences = field(default_factory=Evidences)
    notes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    misses: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, found: Found, detect: Detect) -> None:
        """Count one attempt; a detector that fails on it costs its behaviours, not the analysis."""
        try:
            sightings = detect(found) if found.trajectory.turns else ()
        except Exception as fault:  # the boundary to detectors: hostile traces must not end an analysis
            self.faults[f"{type(fault).__name__}: {fault}"[:120]] += 1
            sightings = ()
        self.notes.update(found.notes)
        self.keep(found, sightings)

    def keep(self, found: Found, sightings: Sequence[Sighting]) -> None:
        """Keep what was seen in one attempt."""
        self.attempts.append(attempt_of(found, sightings))
        self.evidences.offer(found, sightings)
        self.misses.update((s.behaviour, s.miss) for s in sightings if s.present)


def collect(
    scan: Iterable[Found], detect: Detect, seed: int, progress: Callable[[int], None] | None = None
) -> Collected:
    """Read every attempt once."""
    collected = Collected(evidences=Evidences(seed))
    for number, found in enumerate(scan, start=1):
        collected.add(found, detect)
        if progress is not None and number % 100 == 0:
            progress(number)
    return collected


def analysis_of(
    scan: Scan, collected: Collected, behaviours: Iterable[Behaviour], seed: int, judge: JudgeFacts | None = None
) -> Analysis:
    """Put the numbers together; the order of attempts does not matter."""
    attempts = tuple(sorted(collected.attempts, key=lambda attempt: (attempt.source, attempt.task_id)))
    gaps = find_gaps(attempts, behaviours)
    evidences = collected.evidences
    failing, passing = {}, {}
    for gap in gaps:
        name = gap.behaviour.id
        chosen = evidences.of(name, False, QUOTES)
        chosen += evidences.of(name, None, QUOTES - len(chosen))
        failing[name] = tuple(chosen) or tuple(evidences.of(name, True, QUOTES))
        passing[name] = tuple(evidences.of(name, True, 1)) if chosen else ()
    return Analysis(
        scan.coverage, attempts, tuple(gaps), failing, passing, dict(sorted(collected.notes.items())),
        dict(sorted(collected.misses.items())), evidences.without_quote, dict(collected.faults), judge, seed,
    )  # fmt: skip
