"""The behaviour-issue taxonomy and the behaviour-pattern catalogue: data that judges and reflectors share."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from arise.types import Capability


@dataclass(frozen=True)
class IssueTag:
    """One behaviour dimension, e.g. `result_verification`; every diagnostic item carries exactly one."""

    id: str
    definition: str
    usual_capability: Capability
    not_for: str
    brief: str
    """Definition and limit in one line, for prompts that are sent with every rollout."""


@dataclass(frozen=True)
class Pattern:
    """One reusable behaviour, e.g. P02 `spec_readback`: the opportunity, what good looks like, what bad looks like."""

    id: str
    name: str
    when: str
    good: str
    bad: str
    issue_tag: str
    capability: Capability
    brief: str
    """Opportunity and both sides in one line, for prompts that are sent with every rollout."""


@cache
def issue_tags() -> tuple[IssueTag, ...]:
    """All tags, in the taxonomy's order."""
    rows = _read("issue_tags.toml")["tag"]
    return tuple(IssueTag(**(row | {"usual_capability": Capability(row["usual_capability"])})) for row in rows)


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in the catalogue's order."""
    rows = _read("patterns.toml")["pattern"]
    return tuple(Pattern(**(row | {"capability": Capability(row["capability"])})) for row in rows)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
