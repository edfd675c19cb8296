"""Sets of common words and program names, kept as data beside the code that reads by them."""

import tomllib
from functools import cache
from importlib.resources import files


def vocabulary(name: str) -> frozenset[str]:
    """One named set — `vocabulary("viewers")` holds `cat` and `head`."""
    return frozenset(_table()[name].split())


@cache
def _table() -> dict[str, str]:
    return tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))
