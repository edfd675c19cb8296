"""The twelve generic file operations to which every trace is reduced, and classification of file and program names."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from arise.analyst.vocabulary import vocabulary

NUMBER = re.compile(r"[-+.,:]*\d[\d.,:]*%?$")
_BACKUP_NAME = re.compile(
    r"(?:[._-](?:bak|backup|orig|original|old|saved?|copy)|(?:^|/)(?:bak|backups?))(?:\d*$|[._/-])|~$|^/tmp/",
    re.IGNORECASE,
)
_HOST = re.compile(r"(?:[\w-]+\.)+(?:com|org|net|io|edu|gov|dev|ai)(?::\d+)?$", re.IGNORECASE)
_CHECK_WORDS = vocabulary("check_words")


class Op(StrEnum):
    """One kind of act, e.g. `Op.READ`; `USE` passes a file to a program that processes it."""

    READ = "read"
    LIST = "list"
    SEARCH = "search"
    WRITE = "write"
    BACKUP = "backup"
    DELETE = "delete"
    CHECK = "check"
    USE = "use"
    RUN = "run"
    PROBE = "probe"
    INSTALL = "install"
    FINISH = "finish"


INSPECTIONS = frozenset((Op.READ, Op.SEARCH, Op.LIST, Op.PROBE))


@dataclass(frozen=True, slots=True)
class Act:
    """`Act(Op.WRITE, "out.csv", "sort", "sort in.csv > out.csv")`; the path is empty when none is known."""

    op: Op
    path: str
    program: str
    text: str


@lru_cache(maxsize=8192)
def check_like(program: str) -> bool:
    """Return whether the name of a program or file suggests a check, e.g. `run_tests.sh`."""
    words = re.split(r"[^A-Za-z]+", program.rsplit("/", 1)[-1].lower())
    return any(word in _CHECK_WORDS for word in words)


def backup_like(path: str) -> bool:
    """Return whether a path is named like a backup copy, e.g. `data.csv.bak`, `backup/data.csv`."""
    return bool(_BACKUP_NAME.search(path))


def path_like(word: str) -> bool:
    """Return whether a word could name a file: it has a dot or slash and is no number, option, address or sentence."""
    if not word or len(word) > 300 or word[0] == "-" or "://" in word or NUMBER.match(word) or _HOST.match(word):
        return False
    return ("." in word.strip(".") or "/" in word or "*" in word) and not any(c in word for c in " \n\t$(){};,<>")
