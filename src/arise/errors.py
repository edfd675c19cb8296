"""User-facing errors: what happened, the effect, the remedy. Exit codes are fixed."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the `arise` command."""

    OK = 0
    CONFIG = 2
    TASKS = 3
    BUDGET = 4
    STORAGE = 5
    LOCKED = 6
    JUDGE = 7
    NUMERIC = 8
    ENGINE = 9
    INTERRUPTED = 130


class AriseError(Exception):
    """A problem with a remedy — `AriseError("storage", Exit.STORAGE, "run.db: disk full", "...", "free space ...")`."""

    def __init__(self, area: str, exit_code: Exit, what: str, effect: str, remedy: str) -> None:
        self.area, self.exit_code, self.what, self.remedy = area, exit_code, what, remedy
        super().__init__(f"error[{area}]  {what}\n  effect: {effect}\n  do:     {remedy}")
