"""Strict JSON: no duplicate keys, no NaN or Infinity, no repair; returns a reason instead of raising.

Time and memory are linear in the text: it is untrusted.
"""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, ValidationError

MAX_REPLY = 1_000_000
"""Longest reply that is read, in characters."""
MAX_LINES = 10_000
"""Most lines of a reply that are read: no answer has a tenth of them."""
MAX_DEPTH = 32
"""Deepest nesting of a JSON value: a deeper one would break code that prints it."""


class Strict(BaseModel):
    """A wire object: no extra fields, no coercion."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


Texts = Annotated[list[str], FailFast()]
"""A list of strings; validation stops at the first item that is not one, however many follow."""


@dataclass(frozen=True)
class Unreadable:
    """Text that is not the JSON it should be — `Unreadable("duplicate key 'verdict'")`."""

    reason: str


class _StrictError(ValueError):
    pass


def too_long(text: str) -> str:
    """Return why a reply is too long to read; empty if it is not."""
    if len(text) > MAX_REPLY:
        return f"reply longer than {MAX_REPLY:,} characters"
    return f"reply of more than {MAX_LINES:,} lines" if text.count("\n") > MAX_LINES else ""


def read_object(text: str) -> dict[str, Any] | Unreadable:
    """Parse a text that must be exactly one object."""
    if len(text) > MAX_REPLY:
        return Unreadable(f"longer than {MAX_REPLY:,} characters")
    if not text.strip():
        return Unreadable("empty")
    if text.lstrip().startswith("\ufeff"):
        return Unreadable("byte order mark")
    if text.lstrip().startswith("```"):
        return Unreadable("Markdown fence")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except _StrictError as error:
        return Unreadable(str(error))
    except (ValueError, RecursionError):
        return Unreadable("not JSON")
    if not isinstance(value, dict):
        return Unreadable(f"a JSON {type(value).__name__}, not an object")
    return value if _depth(value) <= MAX_DEPTH else Unreadable(f"nested deeper than {MAX_DEPTH} levels")


def problem_of(error: ValidationError) -> str:
    """Return the first validation problem in one line, with its location."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _StrictError(f"duplicate key {key[:40]!r}")
        result[key] = value
    return result


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _StrictError(f"{text[:40]} is too large for a number")
    return value


def _depth(value: Any) -> int:
    """Return the nesting depth of a value, without recursion and only up to the limit."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        containers = (item for item in level if isinstance(item, dict | list))
        level = [inner for item in containers for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _no_constant(name: str) -> Any:
    raise _StrictError(f"{name} is not JSON")
