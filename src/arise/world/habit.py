"""The habits of a careful worker."""

from enum import StrEnum


class Habit(StrEnum):
    """What a careful worker does; none of it is enough for any task alone."""

    LIST = "list"
    GUIDE = "guide"
    SOURCES = "sources"
    PROBE = "probe"
    BACKUP = "backup"
    CHECK = "check"
    REPAIR = "repair"
    DELIVER = "deliver"
    ECONOMY = "economy"
