"""Settings of held-out evaluation."""

from typing import Annotated

from pydantic import Field

from arise.config.base import Count, Positive, Section


class EvaluationConfig(Section):
    """Held-out attempts per task before the first and after the last iteration, always without evolved skills.

    With `every` > 0, also evaluate every `every` iterations with `attempts_on_the_way` attempts per task.
    """

    attempts: Count = 3
    every: Annotated[int, Field(ge=0)] = 0
    attempts_on_the_way: Count = 1
    temperature: Positive = 0.6
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 0.95

    def points(self, iterations: int) -> range:
        """Return the intermediate iterations after which a run of this length is evaluated."""
        return range(self.every, iterations, self.every) if self.every else range(0)
