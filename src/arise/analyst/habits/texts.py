"""The words of each habit, from `texts.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from arise.types import Capability


@dataclass(frozen=True)
class HabitText:
    """All texts about one habit; `misses` maps each way to a description and advice."""

    name: str
    capability: Capability
    issue_tag: str
    criterion: str
    applies: str
    rule: str
    skill: str
    misses: dict[str, tuple[str, str]]


@cache
def habit_texts() -> dict[str, HabitText]:
    """Return the texts by id."""
    rows = tomllib.loads(files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))
    return {
        name: HabitText(
            row["name"], Capability(row["capability"]), row["issue_tag"], row["criterion"], row["applies"],
            row["rule"], row["skill"], {key: (what, advice) for key, (what, advice) in row["misses"].items()},
        )
        for name, row in rows.items()
    }  # fmt: skip
