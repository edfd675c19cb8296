"""What a run does when less than half of its judge's answers are usable (`judge.when_unusable`)."""

import logging
from dataclasses import dataclass, field

from arise.llm.client.stops import AnswersUnusable
from arise.run.facts.judging import unusable_text
from arise.run.queries import RunQueries

log = logging.getLogger(__name__)


@dataclass
class JudgePolicy:
    """Look at the last complete window of the pool, once in each iteration; called before a group is judged.

    The answer depends on committed iterations only, so a resumed run goes on as if it had never stopped. To stop, only
    windows that ended in this process count: a resume implies that the judge was fixed.
    """

    run: RunQueries
    policy: str
    window: int
    start: int
    _decided: dict[int, str] = field(default_factory=dict)

    def __call__(self) -> str:
        """Return why verdicts do not count, or an empty string; raise with the policy `stop`."""
        last = self.run.last_iteration()
        done = 0 if last is None else last.number
        if done not in self._decided:
            self._decided = {done: self._decide(done)}
        return self._decided[done]

    def _decide(self, done: int) -> str:
        end = done - done % self.window
        rows = [row.metrics for row in self.run.iterations() if end - self.window < row.number <= end]
        wrong = unusable_text(rows)
        if wrong and self.policy == "stop" and end > self.start:
            raise AnswersUnusable(f"in iterations {end - self.window + 1} to {end} {wrong}")
        if not wrong or self.policy == "stop":
            return ""
        if done == end:
            log.warning("judge: %s; task rewards only until a window is usable again", wrong)
        return "less than half of the judge's answers in the last window were usable"
