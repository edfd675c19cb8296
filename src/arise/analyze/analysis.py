"""One analysis: read all attempts once and keep only what the reports need."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arise.analyze.behaviours import AnalysedAttempt, Behaviour, Detect, Evidence, Evidences, Sighting, attempt_of
from arise.analyze.found import Found, Triage
from arise.analyze.gaps import Gap, find_gaps
from arise.analyze.scan import Coverage, Scan
from arise.analyze.statistics import Rate

QUOTES = 3


@dataclass(frozen=True)
class JudgeFacts:
    """Statistics of a model judge: requests, answers, dropped and remaining ones, and cost."""

    identity: str
    asked: int
    judged: int
    unjudged: Mapping[str, int]
    """Attempts without a judgment, by reason."""
    confirmed: int
    refuted: int
    dropped_quotes: int
    """Findings dropped because their quote is not in the turn they cite."""
    usd: float
    cap: float
    estimate: str
    agreement: str = ""


@dataclass(frozen=True)
class Analysis:
    """All results of an analysis; reports only format them."""

    coverage: Coverage
    attempts: tuple[AnalysedAttempt, ...]
    gaps: tuple[Gap, ...]
    evidence: Mapping[str, tuple[Evidence, ...]]
    """Quotes by behaviour, failures first (or any attempt if no outcome is known)."""
    contrast: Mapping[str, tuple[Evidence, ...]]
    """Quotes of passes that also show the behaviour."""
    notes: Mapping[str, int]
    misses: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Counts of each way of failing, by (behaviour, miss)."""
    quotes_missing: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    judge: JudgeFacts | None = None
    seed: int = 0

    @property
    def triage(self) -> Counter[Triage]:
        return Counter(attempt.triage for attempt in self.attempts)

    @property
    def verdicts(self) -> Rate:
        """Return passes over attempts with a verifier's verdict, including failures by time limit."""
        judged = [attempt for attempt in self.attempts if attempt.passed is not None]
        return Rate(sum(bool(attempt.passed) for attempt in judged), len(judged))

    @property
    def raw(self) -> Rate:
        """Return passes over attempts with any recorded reward, as a table of rewards would show."""
        filed = [attempt for attempt in self.attempts if attempt.reward is not None or attempt.passed is not None]
        return Rate(sum((attempt.reward or 0.0) >= 1.0 - 1e-6 or bool(attempt.passed) for attempt in filed), len(filed))

    @property
    def outcome_known(self) -> int:
        return sum(attempt.passed is not None for attempt in self.attempts)


@dataclass
class Collected:
    """The result of one pass over the attempts; a judge may later correct `attempts` and `evidences`."""

    attempts: list[AnalysedAttempt] = field(default_factory=list)
    evidences: Evidences = field(default_factory=Evidences)
    notes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    misses: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, found: Found, detect: Detect) -> None:
        """Count one attempt; if a detector fails on it, skip only its behaviours."""
        try:
            sightings = detect(found) if found.trajectory.turns else ()
        except Exception as fault:  # detector boundary: a hostile trace must not abort the analysis
            self.faults[f"{type(fault).__name__}: {fault}"[:120]] += 1
            sightings = ()
        self.notes.update(found.notes)
        self.keep(found, sightings)

    def keep(
        self,
        found: Found,
        sightings: Sequence[Sighting],
        unjudged: frozenset[str] = frozenset(),
        asked: frozenset[str] = frozenset(),
    ) -> None:
        """Store the sightings in one attempt, the behaviours a judge was asked about, and those without a verdict."""
        self.attempts.append(attempt_of(found, sightings, unjudged, asked))
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


def main_way(behaviour: str, misses: Mapping[tuple[str, str], int]) -> str:
    """Return the most frequent way of failing: the headline names it, the skill is against it."""
    ways = {miss: count for (name, miss), count in misses.items() if name == behaviour}
    return min(ways, key=lambda miss: (-ways[miss], miss), default="")


def analysis_of(
    scan: Scan, collected: Collected, behaviours: Iterable[Behaviour], seed: int, judge: JudgeFacts | None = None
) -> Analysis:
    """Compute the results; they do not depend on the order of attempts."""
    attempts = tuple(sorted(collected.attempts, key=lambda attempt: (attempt.source, attempt.task_id)))
    gaps = find_gaps(attempts, behaviours)
    evidences = collected.evidences
    failing, passing = {}, {}
    for gap in gaps:
        name = gap.behaviour.id
        main = main_way(name, collected.misses)
        chosen = evidences.of(name, False, QUOTES, main)
        chosen += evidences.of(name, None, QUOTES - len(chosen), main)
        failing[name] = tuple(chosen) or tuple(evidences.of(name, True, QUOTES, main))
        passing[name] = tuple(evidences.of(name, True, 1, main)) if chosen else ()
    return Analysis(
        scan.coverage, attempts, tuple(gaps), failing, passing, dict(sorted(collected.notes.items())),
        dict(sorted(collected.misses.items())), evidences.without_quote, dict(collected.faults), judge, seed,
    )  # fmt: skip
