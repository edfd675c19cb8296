"""The twelve generic acts on files that every trace is read into, and what names of files and programs give away."""

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
_CHECK_WORDS = vocabulary("check_words")


class Op(StrEnum):
    """One kind of act, e.g. `Op.READ`; `USE` hands a file to a program that works on it."""

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
    """Whether a program's or file's name says that it checks something, e.g. `run_tests.sh`."""
    words = re.split(r"[^A-Za-z]+", program.rsplit("/", 1)[-1].lower())
    return any(word in _CHECK_WORDS for word in words)


def backup_like(path: str) -> bool:
    """Whether a path is named as a copy that is kept aside, e.g. `data.csv.bak`, `backup/data.csv`."""
    return bool(_BACKUP_NAME.search(path))


def path_like(word: str) -> bool:
    """Whether a word could name a file: it has a dot or slash and is no number, option, address or sentence."""
    if not word or len(word) > 300 or word[0] == "-" or "://" in word or NUMBER.match(word):
        return False
    return ("." in word.strip(".") or "/" in word or "*" in word) and not any(c in word for c in " \n\t$(){};,")
