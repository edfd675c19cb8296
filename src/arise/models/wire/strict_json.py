"""JSON as strict as it gets: no duplicate key, no NaN or Infinity, no repair; a reason instead of an exception."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

MAX_REPLY = 1_000_000
"""Characters of a reply that are read at all."""


class Strict(BaseModel):
    """A wire object: no field more, no coercion."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


@dataclass(frozen=True)
class Unreadable:
    """Text that is not the JSON it should be — `Unreadable("duplicate key 'verdict'")`."""

    reason: str


class _StrictError(ValueError):
    pass


def read_object(text: str) -> dict[str, Any] | Unreadable:
    """The object a text is, nothing before or after it."""
    if len(text) > MAX_REPLY:
        return Unreadable(f"longer than {MAX_REPLY:,} characters")
    if not text.strip():
        return Unreadable("empty")
    if text.lstrip().startswith("\ufeff"):
        return Unreadable("byte order mark")
    if text.lstrip().startswith("```"):
        return Unreadable("Markdown fence")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except _StrictError as error:
        return Unreadable(str(error))
    except (ValueError, RecursionError):
        return Unreadable("not JSON")
    return value if isinstance(value, dict) else Unreadable(f"a JSON {type(value).__name__}, not an object")


def problem_of(error: ValidationError) -> str:
    """The first problem of a validation in one line, with where it stands."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _StrictError(f"duplicate key {twice[:40]!r}")
    return result


def _no_constant(name: str) -> Any:
    raise _StrictError(f"{name} is not JSON")
