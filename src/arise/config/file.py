"""Load TOML files and `--set section.key=value` into a `Config`; all problems are reported at once.

Errors include the line number in the file.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from arise.config import Config
from arise.config.base import LengthAdjustment
from arise.text.secrets import found

LASTING = {"credit": tuple(LengthAdjustment.model_fields)}
"""Keys with the same meaning in several kinds of a section; a change of kind keeps them if the new kind has them."""


class ConfigError(ValueError):
    """All problems of a configuration, one per line."""

    def __init__(self, problems: Sequence[str], source: str) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"error[config]  {count}, nothing was started\n{lines}\n  source: {source}")


def load_config(paths: Path | Sequence[Path] | None = None, overrides: Sequence[str] = ()) -> Config:
    """Load TOML files, merged left to right over the paper's values, then apply `section.key=value` overrides."""
    files = [paths] if isinstance(paths, Path) else list(paths or [])
    source = " and ".join([*map(str, files), *(["--set"] if overrides else [])]) or "defaults"
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for path in files:
        text, layer = _read(path)
        values = merged(values, layer)
        within = f"{path.name} " if len(files) > 1 else ""
        places |= {key: f"{within}line {number}" for key, number in _line_numbers(text).items()}
    problems = [problem for override in overrides if (problem := _set(values, override))]
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        places |= {override.partition("=")[0].strip(): "--set" for override in overrides}
        problems += [_describe(details, places) for details in error.errors()]
        raise ConfigError(problems, source) from None
    problems += [
        f"{key}: holds what looks like a key — name an environment variable with api_key_env instead"
        for key, text in _texts(config.model_dump())
        if found(text, {})
    ]
    if problems:
        raise ConfigError(problems, source)
    return config


def _texts(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every string of a configuration with its key."""
    if isinstance(values, str):
        yield key, values
    elif isinstance(values, dict):
        for name, value in values.items():
            yield from _texts(value, f"{key}.{name}".lstrip("."))
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value, key)


def merged(values: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """Merge `layer` over `values`; a section of another kind replaces the old one except for its `LASTING` keys."""
    result = dict(values)
    for key, value in layer.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and _kind(key, below) == _kind(key, value, below):
            result[key] = merged(below, value)
        elif isinstance(below, dict) and isinstance(value, dict):
            known = getattr(_variants(key).get(str(_kind(key, value))), "model_fields", LASTING.get(key, ()))
            result[key] = {
                name: below[name] for name in LASTING.get(key, ()) if name in below and name in known
            } | value
        else:
            result[key] = value
    return result


def _kind(section: str, values: Mapping[str, Any], below: Mapping[str, Any] | None = None) -> object:
    """Return the kind of a section: from its values, else from the layer below, else the default."""
    default = getattr(Config.model_fields[section].default, "kind", None) if section in Config.model_fields else None
    return values.get("kind", (below or {}).get("kind", default))


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError([f"cannot read the file: {error.strerror}"], str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError(["the file is not UTF-8 text"], str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"not valid TOML: {error}"], str(path)) from None


def _set(values: dict[str, Any], override: str) -> str | None:
    """Apply one `section.key=value`; return the problem if it is invalid."""
    key, equals, text = override.partition("=")
    *sections, name = key.strip().split(".")
    if not equals or not name or not all(sections):
        return f"--set {override}: expected section.key=value, e.g. --set train.iterations=20"
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # accept an unquoted word as a string
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            return f"--set {override}: {section} is a value, not a section"
    values[name] = value
    return None


def _describe(details: Mapping[str, Any], places: Mapping[str, str]) -> str:
    """Describe one problem: key, value, error and the probable intended key."""
    location = [str(part) for part in details["loc"]]
    # pydantic adds the kind of a union to the paths of the keys inside it.
    path = [part for n, part in enumerate(location) if not (n == 1 and part in _variants(location[0]))]
    if path[:2] == ["trackers", "use"]:
        path = path[:3] + path[4:]
    key = ".".join(path)
    place = f" ({places[key]})" if key in places else ""
    if details["type"] == "extra_forbidden":
        if owners := _kinds_with(key):
            return f"{key}: not a key of kind {location[1]!r}{place} — it belongs to {' and '.join(owners)}"
        guess = _guess(key)
        return f"{key}: unknown key{place}" + (f" — did you mean {guess}?" if guess else "")
    shown = "" if isinstance(details["input"], dict) else f" = {details['input']!r}"
    return f"{key}{shown}: {details['msg'].removeprefix('Value error, ')}{place}{_unquoted(details)}"


def _unquoted(details: Mapping[str, Any]) -> str:
    """Return a hint if a number or boolean is quoted."""
    text = details["input"]
    if details["type"] not in ("int_type", "float_type", "bool_type") or not isinstance(text, str):
        return ""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return ""
    return f" — write {text} without quotes" if isinstance(value, bool | int | float) else ""


def _guess(key: str) -> str:
    """Return the probable intended key: the same name in another section, or a similar name in this one."""
    section, _, name = key.rpartition(".")
    known = [other.rpartition(".") for other in dict.fromkeys(known_keys())]
    elsewhere = [".".join((other, same)) for other, _, same in known if same == name and other]
    like = difflib.get_close_matches(name, [sibling for other, _, sibling in known if other == section], n=1)
    guesses = elsewhere + [f"{section}.{name}".lstrip(".") for name in like]
    return guesses[0] if guesses else ""


def differences(config: Config, other: Config | None = None) -> dict[str, Any]:
    """Return the values of `config` that differ from `other` (default: the paper), with the `kind` of variants."""
    return _differences(config.model_dump(), (other or Config()).model_dump())


def _differences(values: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(reference.get(key), dict):
            inner = _differences(value, reference[key])
            if inner:
                changed[key] = ({"kind": value["kind"]} if "kind" in value else {}) | inner
        elif key not in reference or value != reference[key]:
            changed[key] = value
    return changed


def known_keys(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Yield every valid key as `section.key`."""
    for name, field in model.model_fields.items():
        yield f"{prefix}{name}"
        for section in _sections(field.annotation):
            yield from known_keys(section, f"{prefix}{name}.")


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if get_origin(annotation) in (Union, UnionType):
        return [section for part in get_args(annotation) for section in _sections(part)]
    return [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []


def _variants(section: str) -> dict[str, type[BaseModel]]:
    field = Config.model_fields.get(section)
    options = _sections(field.annotation) if field else []
    return {option.model_fields["kind"].default: option for option in options if "kind" in option.model_fields}


def _kinds_with(key: str) -> list[str]:
    """Return the kinds of a section that have this key, for an error about a key of another kind."""
    section, _, name = key.partition(".")
    return [repr(kind) for kind, variant in _variants(section).items() if name in variant.model_fields]


def _line_numbers(text: str) -> dict[str, int]:
    """Return the line number of each `section.key` in a TOML text."""
    lines, section = {}, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([\w.\-]+)\s*\]+", line):
            section = f"{header[1]}."
            lines[header[1]] = number
        elif key := re.match(r"\s*([\w.\-]+)\s*=", line):
            lines[f"{section}{key[1]}"] = number
    return lines
