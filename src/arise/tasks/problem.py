"""Problems of a task directory as data, each with its remedy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TaskProblem:
    """One problem — `TaskProblem(Path("t/task.toml"), "agent.timeout_sec: must be above 0", "give seconds")`."""

    path: Path
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}. {self.remedy[:1].upper()}{self.remedy[1:]}."


class CorpusError(ValueError):
    """A corpus with problems, listed in `.problems`."""

    def __init__(self, problems: Sequence[TaskProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
