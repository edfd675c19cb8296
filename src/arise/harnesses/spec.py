"""What ARISE knows of a harness: how it is installed, configured, started and kept from calling anything else.

Each is one TOML file in `specs/`. `{{name}}` stands for a value of the rollout, see `Values`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

SPECS = Path(__file__).parent / "specs"
COMMAND = "command"
"""The kind of a harness that a user describes by a command of their own."""


@dataclass(frozen=True)
class Values:
    """What templates may name; `url` has no path, `home` is a writable folder outside the task's files."""

    url: str
    key: str
    model: str
    home: str
    instruction: str
    """The file that holds the task's instruction."""
    install: str = ""
    window: str = ""
    max_tokens: str = ""

    def fill(self, text: str) -> str:
        """Put the values into a template."""
        for name, value in vars(self).items():
            text = text.replace("{{" + name + "}}", value)
        return text


@dataclass(frozen=True)
class Harness:
    """One harness — `harness("pi").command`."""

    name: str
    command: str
    """Started in the working directory; its exit is the end of the attempt."""
    about: str = ""
    api: Literal["chat", "messages", "responses"] = "chat"
    installer: Literal["pip", "npm", "none"] = "none"
    packages: tuple[str, ...] = ()
    program: str = ""
    """What an installation must hold, below its folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write before the start, by path."""
    memory_mb: int = 1536
    """The least memory of a sandbox that it runs in."""
    tested: str = ""
    """The version that its settings were tried with."""


@cache
def harness(name: str) -> Harness:
    """Return a harness that ships; raise KeyError for an unknown name."""
    path = SPECS / f"{name}.toml"
    if name not in names():
        raise KeyError(name)
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    values["packages"] = tuple(values.get("packages", ()))
    return Harness(name=name, **values)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all harnesses that ship."""
    return tuple(sorted(path.stem for path in SPECS.glob("*.toml")))
