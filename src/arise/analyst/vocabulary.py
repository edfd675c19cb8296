"""Sets of common words and program names, stored as data files."""

import tomllib
from functools import cache
from importlib.resources import files


def vocabulary(name: str) -> frozenset[str]:
    """Return one named set — `vocabulary("viewers")` contains `cat` and `head`."""
    return frozenset(_table()[name].split())


@cache
def _table() -> dict[str, str]:
    return tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))
