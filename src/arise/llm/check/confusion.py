"""A judge's verdicts against known answers, measured so that a constant or a random judge scores zero."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arise.method.intervals import difference_interval, wilson_interval
from arise.types import Tally, Verdict

Answers = Mapping[tuple[str, str], Verdict]
"""Verdicts by (trajectory id, rubric id)."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix of verdicts: `counts[known, given]`.

    Over several rounds on the same answers the counts are sums, but an interval counts each answer once, because
    repeats of a judge are not independent.
    """

    counts: Mapping[tuple[Verdict, Verdict], int]
    rounds: int = 1

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def agreement(self) -> float | None:
        """Return the share of equal verdicts; it says little where one verdict is frequent."""
        return sum(self.counts.get((v, v), 0) for v in Verdict) / self.total if self.total else None

    @property
    def kappa(self) -> float | None:
        """Return Cohen's kappa, 0 for a constant judge and 1 for a perfect one; None if chance explains all."""
        if self.agreement is None:
            return None
        known, given = (Counter[Verdict](), Counter[Verdict]())
        for (truth, said), count in self.counts.items():
            known[truth] += count
            given[said] += count
        chance = sum(known[v] * given[v] for v in Verdict) / self.total**2
        return (self.agreement - chance) / (1.0 - chance) if chance < 1.0 else None

    @property
    def constant(self) -> Verdict | None:
        """Return the judge's verdict if it gave only one although the known answers differ, else None."""
        given = {said for (_, said), count in self.counts.items() if count}
        known = {truth for (truth, _), count in self.counts.items() if count}
        return next(iter(given)) if len(given) == 1 and len(known) > 1 else None

    def given(self, known: Verdict, said: Verdict) -> Tally:
        """Return how many answers known to be `known` the judge gave as `said`, per round."""
        of = sum(self.counts.get((known, other), 0) for other in Verdict)
        return Tally(round(self.counts.get((known, said), 0) / self.rounds), round(of / self.rounds))

    def recall(self, known: Verdict) -> float | None:
        """Return the share of answers known to be `known` that the judge also gave; None if there are none."""
        of = sum(self.counts.get((known, other), 0) for other in Verdict)
        return self.counts.get((known, known), 0) / of if of else None

    @property
    def balanced(self) -> float | None:
        """Return the mean recall of the verdicts that occur among the known answers."""
        recalls = [share for share in map(self.recall, Verdict) if share is not None]
        return sum(recalls) / len(recalls) if recalls else None

    @property
    def informedness(self) -> float | None:
        """Return the rate of fail verdicts where fail is known minus the rate where pass is known (Youden's J)."""
        fails, passes = (self.given(known, Verdict.FAIL) for known in (Verdict.FAIL, Verdict.PASS))
        if not fails.evaluations or not passes.evaluations:
            return None
        return fails.passes / fails.evaluations - passes.passes / passes.evaluations

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the informedness."""
        fails, passes = (self.given(known, Verdict.FAIL) for known in (Verdict.FAIL, Verdict.PASS))
        return difference_interval(passes, fails) if fails.evaluations and passes.evaluations else None

    def facts(self) -> dict[str, object]:
        """Return the measures as values of JSON."""
        recalls = {
            known.value: {
                "right": tally.passes,
                "known": tally.evaluations,
                "share": self.recall(known),
                "interval": wilson_interval(*tally),
            }
            for known in Verdict
            if (tally := self.given(known, known)).evaluations
        }
        return {
            "agreement": self.agreement,
            "balanced": self.balanced,
            "recalls": recalls,
            "kappa": self.kappa,
            "informedness": self.informedness,
            "interval": self.interval,
            "constant": self.constant,
        }


def confusion(rounds: Sequence[Answers], known: Answers) -> Confusion:
    """Compare each round of answers with the known ones; what is missing on either side is left out."""
    counts = Counter((known[key], given[key]) for given in rounds for key in given.keys() & known.keys())
    return Confusion(dict(counts), max(1, len(rounds)))
