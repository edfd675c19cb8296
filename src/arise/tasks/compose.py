"""Read a task's compose file: with the agent's container as its only service, it is one more description of that one.

Such files mostly repeat what Harbor does anyway. Whatever goes beyond, other containers above all, is named.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from arise.tasks.scan import read_text
from arise.types import Place
from arise.types.sandbox import COMPOSE_FILE

OTHER_NAMES = ("docker-compose.yml", "singularity-compose.yaml")
"""Compose files that do not count where a task has an image or a Dockerfile."""
MAIN = "main"
_IDLE = re.compile(r"((/bin/)?(ba)?sh -c )?(exec )?(sleep infinity|tail -f /dev/null)")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")
_CONTEXT = re.compile(r"^\$(\{CONTEXT_DIR\}|CONTEXT_DIR)/?")
_LOGS = re.compile(r"\$\{HOST_(VERIFIER_LOGS|AGENT_LOGS|ARTIFACTS)_PATH\}:.*")
_OWN = {"TEST_DIR": "/tests", "ENV_VERIFIER_LOGS_PATH": "/logs/verifier", "ENV_AGENT_LOGS_PATH": "/logs/agent"}
"""Variables of Harbor that a compose file may refer to."""
_WITHOUT_EFFECT = frozenset({"container_name", "init", "pull_policy", "restart", "stdin_open", "tty"})
_TOP = frozenset({"name", "services", "version"})
_NETWORKS = {"none": "none", "bridge": "", "default": ""}


@dataclass(frozen=True)
class Composed:
    """What a compose file asks of the agent's container, and why the rest of it is not honoured."""

    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = ""
    network: str = ""
    image: str = ""
    context: Path | None = None
    dockerfile: Path | None = None
    beyond: tuple[str, ...] = ()

    def but(self, reason: str) -> "Composed":
        """Return the same with one more part that is not honoured."""
        return replace(self, beyond=(*self.beyond, reason))

    def added_to(self, place: Place) -> Place:
        """Return the place with what the file adds to it; the task file has the last word."""
        return replace(
            place,
            env={**self.env, **place.env},
            workdir=place.workdir or self.workdir,
            network=self.network or place.network,
            image=place.image or self.image,
            dockerfile=self.dockerfile or place.dockerfile,
            context=self.context or place.context,
        )


def compose_file(environment: Path, place: Place) -> Path | None:
    """Return the compose file of a task; a file of another name counts only if nothing else describes an image."""
    names = (COMPOSE_FILE,) if place.image or place.dockerfile is not None else (COMPOSE_FILE, *OTHER_NAMES)
    return next((path for name in names if (path := environment / name).exists()), None)


def read_compose(path: Path) -> Composed:
    """Return what a compose file asks for."""
    if path.name != COMPOSE_FILE:
        return Composed().but(f"is not read under this name, which must be {COMPOSE_FILE}")
    text = read_text(path)
    try:
        given = yaml.safe_load(text) if isinstance(text, str) else None
    except (yaml.YAMLError, RecursionError, ValueError):
        given = None
    services = given.get("services") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(services, Mapping):
        return Composed().but("cannot be read as YAML with services")
    asked = Composed()
    for key in given:
        asked = asked if key in _TOP or str(key).startswith("x-") else asked.but(f"{key}: is not supported")
    if others := [str(name) for name in services if name != MAIN]:
        asked = asked.but(f"starts other containers, which are not supported: {', '.join(others)}")
    main = services.get(MAIN)
    for key, value in main.items() if isinstance(main, Mapping) else ():
        asked = _with(asked, str(key), value, path.parent)
    return asked


def _with(asked: Composed, key: str, value: object, folder: Path) -> Composed:
    """Return what is asked for with one more setting of the agent's container."""
    name = f"services.{MAIN}.{key}"
    if key == "build":
        return _build(asked, value, folder)
    if key == "environment":
        return _environment(asked, value)
    if key == "image":
        return asked if "$" in str(value) or asked.dockerfile else replace(asked, image=str(value))
    if key == "working_dir":
        return replace(asked, workdir=str(value))
    if key == "network_mode" and (mode := _resolved(str(value))) in _NETWORKS:
        return replace(asked, network=_NETWORKS[mode])
    if key == "command" and not _IDLE.fullmatch(
        line := " ".join(map(str, value if isinstance(value, list) else [value]))
    ):
        return asked.but(f"{name}: the container runs no program of its own: {line[:80]!r}")
    if key == "volumes" and (mounts := [str(each) for each in _listed(value) if not _LOGS.fullmatch(str(each))]):
        return asked.but(f"{name}: nothing of this machine is mounted: {mounts[0]}")
    if key == "deploy" and not set(_leaves(value)) <= {"${CPUS}", "${MEMORY}"}:
        return asked.but(f"{name}: the resources of a task stand in its own file")
    return (
        asked if key in {"command", "volumes", "deploy", *_WITHOUT_EFFECT} else asked.but(f"{name}: is not supported")
    )


def _build(asked: Composed, value: object, folder: Path) -> Composed:
    given = value if isinstance(value, Mapping) else {"context": value}
    name = f"services.{MAIN}.build"
    if more := sorted(str(key) for key in given if key not in ("context", "dockerfile")):
        return asked.but(f"{name}.{more[0]}: is not supported")
    context = _path(str(given.get("context", ".")), folder, folder)
    dockerfile = _path(str(given.get("dockerfile", "Dockerfile")), context, folder)
    if not all(path.is_relative_to(folder.parent) for path in (context, dockerfile)):
        return asked.but(f"{name}: lies outside of the task")
    if not dockerfile.is_file():
        return asked.but(f"{name}: there is no {dockerfile.relative_to(folder.parent)}")
    return replace(asked, image="", dockerfile=dockerfile, context=context if context != dockerfile.parent else None)


def _path(text: str, base: Path, folder: Path) -> Path:
    """Return a path of a compose file; CONTEXT_DIR is what Harbor calls the folder of the file."""
    rest = _CONTEXT.sub("", text)
    return Path(os.path.normpath((base if rest == text else folder) / rest))


def _environment(asked: Composed, value: object) -> Composed:
    pairs = value.items() if isinstance(value, Mapping) else (str(each).partition("=")[::2] for each in _listed(value))
    found = {str(name): _resolved("" if given is None else str(given)) for name, given in pairs}
    known = {name: text for name, text in found.items() if text is not None}
    asked = replace(asked, env={**asked.env, **known})
    if unknown := [name for name, text in found.items() if text is None]:
        what = f"asks for variables of this machine, which no sandbox sees: {', '.join(unknown)}"
        return asked.but(f"services.{MAIN}.environment: {what}")
    return asked


def _resolved(text: str) -> str | None:
    """Return a text with the variables of Harbor and defaults put in; None if another variable is needed."""
    for found in _VARIABLE.finditer(text):
        if found[2] is None and (found[1] or found[3]) not in _OWN:
            return None
    return _VARIABLE.sub(lambda found: _OWN.get(found[1] or found[3], found[2] or ""), text)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    else:
        yield str(value)
