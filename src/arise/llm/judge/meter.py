"""Live judge statistics: replies, how many were cached or quarantined, and latency."""

from collections import deque
from collections.abc import Mapping
from statistics import median

from arise.text.numbers import percent, seconds

RECENT = 500


class Meter:
    """Count the events of a judge's calls; `str(meter)` is the line for the screen."""

    def __init__(self) -> None:
        self.replies = self.cached = self.quarantined = self.weak = 0
        self._seconds: deque[float] = deque(maxlen=RECENT)
        self._since_lap: list[float | None] = []

    def take(self, name: str, fields: Mapping[str, object]) -> None:
        """Count one event; events unrelated to the judge's replies are ignored."""
        if name == "judge.quarantined":
            self.quarantined += 1
        if name == "judge.weak":
            self.weak += 1
        if name != "judge.reply":
            return
        self.replies += 1
        seconds = fields["seconds"]
        if fields["cached"]:
            self.cached += 1
            self._since_lap.append(None)
        elif isinstance(seconds, float):
            self._seconds.append(seconds)
            self._since_lap.append(seconds)

    def lap(self) -> dict[str, float]:
        """Return replies since the last call, how many were cached, and the latency of the others."""
        replies, self._since_lap = self._since_lap, []
        took = sorted(seconds for seconds in replies if seconds is not None)
        numbers: dict[str, float] = {"judge.replies": len(replies), "judge.recorded": len(replies) - len(took)}
        if took:
            numbers |= {"judge.seconds": median(took), "judge.seconds_p95": took[int(0.95 * (len(took) - 1))]}
        return numbers

    def __str__(self) -> str:
        if not self.replies:
            return "no reply yet"
        typical = f"typically {seconds(median(self._seconds))}, " if self._seconds else ""
        recorded = f"{percent(self.cached / self.replies)} recorded"
        weak = f", {self.weak} from a judge too weak for its control questions" if self.weak else ""
        return f"{self.replies} replies, {typical}{recorded}, {self.quarantined} quarantined{weak}"
