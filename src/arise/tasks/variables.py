"""Environment variables of a task file, which may refer to variables of the machine."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*")


def _text(value: object) -> str:
    """Return a scalar of TOML or YAML as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{value!r} is not text or a number")


def _environment(value: object) -> object:
    """Resolve `${VAR:-default}` in variables to the default; a sandbox never sees the host's environment."""
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if not isinstance(name, str) or not VARIABLE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a variable")
    return {name: _VARIABLE.sub(lambda found: found[2] or "", _text(content)) for name, content in value.items()}


def host_references(given: object, section: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield section, name and variable of each `${VAR}` without a default, anywhere in a task file."""
    if isinstance(given, list):
        for number, part in enumerate(given):
            yield from host_references(part, f"{section}.{number}")
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if key == "env" and isinstance(value, Mapping):
            for name, content in value.items():
                found = (match for match in _VARIABLE.finditer(str(content)) if match[2] is None)
                yield from ((section, str(name), match[1]) for match in found)
        else:
            yield from host_references(value, f"{section}.{key}".lstrip("."))


Environment = Annotated[dict[str, str], BeforeValidator(_environment)]
