"""The specification of a harness: how to install, configure, start and isolate it.

Each is one TOML file in `specs/`. `{{name}}` is replaced by a value of the rollout, see `Values`.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

SPECS = Path(__file__).parent / "specs"
COMMAND = "command"
"""The kind of a harness that the user defines by a command."""


@dataclass(frozen=True)
class Values:
    """Template values; `url` has no path, `home` is a writable folder outside the task's files."""

    url: str
    key: str
    model: str
    home: str
    instruction: str
    """The path of the file with the task's instruction."""
    program: str = ""
    """The shell words that start the harness's own program."""
    window: str = ""
    max_tokens: str = ""
    arguments: str = ""

    def fill(self, text: str) -> str:
        """Substitute the values in a template."""
        for name, value in vars(self).items():
            text = text.replace("{{" + name + "}}", value)
        return text


@dataclass(frozen=True)
class Shell:
    """How the model runs a shell command through a harness, and how it ends its work."""

    tool: str = "bash"
    argument: str = "command"
    also: Mapping[str, str] = field(default_factory=dict)
    """Other arguments that the tool requires."""
    finish: str = ""
    """The command that ends the work; "" if an answer without a call does."""


@dataclass(frozen=True)
class Harness:
    """One harness — `harness("pi").command`."""

    name: str
    command: str
    """The command, started in the working directory; the attempt ends when it exits."""
    about: str = ""
    api: Literal["chat", "messages", "responses"] = "chat"
    installer: Literal["pip", "npm", "none"] = "none"
    packages: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Further arguments of its command line."""
    program: str = ""
    """The program's path below the installation folder."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write before the start, by path."""
    shell: Shell = field(default_factory=Shell)
    memory_mb: int = 1536
    """The minimum memory of the sandbox."""
    tested: str = ""
    """The version that the specification was tested with."""


@cache
def harness(name: str) -> Harness:
    """Return a built-in harness; raise KeyError for an unknown name."""
    path = SPECS / f"{name}.toml"
    if name not in names():
        raise KeyError(name)
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    values["packages"] = tuple(values.get("packages", ()))
    values["shell"] = Shell(**values.get("shell", {}))
    return Harness(name=name, **values)


@cache
def names() -> tuple[str, ...]:
    """Return the names of all built-in harnesses."""
    return tuple(sorted(path.stem for path in SPECS.glob("*.toml")))
