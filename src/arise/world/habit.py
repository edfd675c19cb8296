"""The habits of a careful worker."""

from enum import StrEnum


class Habit(StrEnum):
    """A behaviour of a careful worker; none is sufficient for any task alone."""

    LIST = "list"
    GUIDE = "guide"
    SOURCES = "sources"
    PROBE = "probe"
    BACKUP = "backup"
    CHECK = "check"
    REPAIR = "repair"
    DELIVER = "deliver"
    ECONOMY = "economy"
