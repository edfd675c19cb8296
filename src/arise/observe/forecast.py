"""Forecast how long a whole run still takes, from the stages ahead and the pace of the finished ones."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from arise.config import Config, SmallModel
from arise.config.agent import HarnessConfig
from arise.run.labels import on_the_way
from arise.text.progress import Reached


@dataclass(frozen=True)
class Costs:
    """Seconds on two cores of an AMD EPYC. Only their ratios matter: the pace is measured."""

    demonstration: float
    cloned_demonstration: float
    attempt: float


EMBEDDED = Costs(0.017, 0.011, 0.03)
"""The world's own agent, with `configs/embedded.toml`."""
HARNESS = Costs(1.1, 0.06, 0.9)
"""A program that starts for every attempt and writes longer prompts, with `configs/pi.toml`."""
MIN_SECONDS, MIN_SHARE = 2.0, 0.005
"""No forecast is shown before this much is done."""
RECENT = 0.1
"""The pace is that of the last tenth of the run: a machine gets busy, and attempts get longer as a policy learns."""


@dataclass(frozen=True)
class Stage:
    """A wait by the name of its progress reports, and its expected share of the run."""

    name: str
    weight: float


def stages(config: Config, held_out: int, warm_start: bool) -> Iterator[Stage]:
    """Yield the stages of a run; a warm start of another model than the small one has no known weight."""
    model, evaluation, iterations = config.model, config.evaluation, config.train.iterations
    costs = HARNESS if isinstance(config.agent, HarnessConfig) else EMBEDDED
    if warm_start and isinstance(model, SmallModel):
        yield Stage("warm start: demonstrations", costs.demonstration * model.demonstrations)
        yield Stage("warm start: cloning", costs.cloned_demonstration * model.demonstrations * model.epochs)
    yield Stage("evaluation before: attempts", costs.attempt * held_out * evaluation.attempts)
    rollouts = costs.attempt * config.train.tasks_per_iteration * config.train.group_size
    points = evaluation.points(iterations)
    for iteration in range(1, iterations + 1):
        yield Stage(f"iteration {iteration}: rollouts", rollouts)
        if iteration in points:
            attempts = costs.attempt * held_out * evaluation.attempts_on_the_way
            yield Stage(f"evaluation {on_the_way(iteration)}: attempts", attempts)
    yield Stage("evaluation after: attempts", costs.attempt * held_out * evaluation.attempts)


class TimeForecast:
    """Follows the progress reports of a run and extrapolates."""

    def __init__(self, stages: Iterator[Stage], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begins: dict[str, tuple[float, float]] = {}
        self._total = 0.0
        for stage in stages:
            self._begins[stage.name] = self._total, stage.weight
            self._total += stage.weight
        self._seen = deque[tuple[float, float]]()
        self._done = 0.0

    def take(self, reached: Reached) -> None:
        """Note how far a stage is; earlier stages are over then, whether they were seen or not."""
        if reached.what not in self._begins:
            return
        begin, weight = self._begins[reached.what]
        share = 1.0 if reached.over else reached.done / max(1, reached.total)
        self._done = max(self._done, begin + weight * share)
        self._seen.append((self._clock(), self._done))
        while len(self._seen) > 2 and self._seen[1][1] <= self._done - RECENT * self._total:
            self._seen.popleft()

    @property
    def left(self) -> float | None:
        """Return the remaining seconds; None while the pace is not known."""
        if not self._seen:
            return None
        begun, before = self._seen[0]
        elapsed, done = self._clock() - begun, self._done - before
        if elapsed < MIN_SECONDS or done < MIN_SHARE * self._total:
            return None
        return elapsed / done * (self._total - self._done)
