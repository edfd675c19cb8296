"""Generate the reference pages of the documentation from the code: configuration, command line, Python API.

`scripts/docs_hooks.py` calls this at build time; no generated page is stored in the repository.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from typer.main import get_command

import arise
import arise.method
import arise.ports
import arise.types
from arise.cli.app import app
from arise.config import Config

SETTINGS = Path(__file__).with_name("docs_settings.toml")
"""One sentence per setting that has no docstring in the code."""
EXITS = {
    "OK": "success",
    "CONFIG": "the configuration, or a model it names, cannot be used; nothing was started",
    "TASKS": "a task cannot be used; nothing was started",
    "BUDGET": "the budget is spent; `arise resume RUN --add-budget USD` continues",
    "STORAGE": "the run folder cannot be read or written, for example because the disk is full",
    "LOCKED": "another process is writing to this run",
    "JUDGE": "the judge is down, or another model answered in its place",
    "NUMERIC": "training diverged: a loss or gradient is not finite",
    "ENGINE": "the sandbox or the engine failed, for example for lack of memory",
    "INTERRUPTED": "stopped by Ctrl-C or a signal; `arise resume RUN` continues",
}
"""What each exit code means to a person."""
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


# Configuration


def configuration_page() -> str:
    """Return the configuration reference: every section, kind and key with its type, default and meaning."""
    lines = [
        "# Configuration",
        "",
        "A configuration is one or more TOML files. Later files override earlier ones, and `--set section.key=value` "
        "overrides both. Every default is the paper's value where the paper gives one. `arise config FILE` checks a "
        "configuration and prints it in full; an unknown key is an error that suggests the key you probably meant.",
        "",
        "A section that comes in several *kinds* is chosen by its `kind` key, for example "
        '`[sampler]` with `kind = "vade"`.',
        "",
    ]
    for name, field in Config.model_fields.items():
        variants = sections_of(field.annotation)
        lines += [f"## `[{name}]`", ""]
        for variant in variants:
            kind = variant.model_fields.get("kind")
            if kind is not None and len(variants) > 1:
                default = type(field.default) is variant
                named = kinds_text(kind)
                lines += [f"### `{name}.kind = {named}`{' (default)' if default else ''}", ""]
            lines += [summary(variant), "", *_settings_table(variant, f"{name}.")]
    lines += ["## Nested tables", ""]
    for model in nested_models():
        lines += [f"### {model.__name__}", "", summary(model), "", *_settings_table(model, f"{model.__name__}.")]
    return "\n".join(lines)


def kinds_text(field: Any) -> str:
    """Return the value of a `kind` key, or its choices where it has no default."""
    if not field.is_required():
        return json.dumps(field.default)
    return " | ".join(json.dumps(value) for value in get_args(field.annotation))


def _settings_table(model: type[BaseModel], prefix: str) -> list[str]:
    rows = []
    for name, field in model.model_fields.items():
        if name == "kind":
            continue
        default = "required" if field.is_required() else _default(field)
        text = description(model, name, prefix)
        rows.append(f"| `{name}` | {type_text(field.annotation, field.metadata)} | {default} | {cell(text)} |")
    return _table("| key | type | default | meaning |", rows) if rows else ["No keys.", ""]


def _table(head: str, rows: list[str]) -> list[str]:
    """Return a table whose keys and defaults stay on one line."""
    line = "|---" * (head.count("|") - 1) + "|"
    return ['<div class="settings" markdown>', "", head, line, *rows, "", "</div>", ""]


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see the table"
    return "none" if value is None or value is PydanticUndefined else f"`{json.dumps(value)}`"


def description(model: type[BaseModel], name: str, prefix: str) -> str:
    """Return what a key means: its docstring in the code, else its sentence in docs_settings.toml."""
    return attribute_docs(model).get(name) or settings_file().get(f"{prefix}{name}", "")


def documented_keys() -> Iterator[tuple[str, bool, bool]]:
    """Yield every key with whether the code and whether docs_settings.toml describes it."""
    owners: list[tuple[type[BaseModel], str]] = [(model, f"{model.__name__}.") for model in nested_models()]
    for section, field in Config.model_fields.items():
        owners += [(variant, f"{section}.") for variant in sections_of(field.annotation)]
    for model, prefix in owners:
        for name in model.model_fields:
            if name != "kind":
                yield f"{prefix}{name}", name in attribute_docs(model), f"{prefix}{name}" in settings_file()


@cache
def settings_file() -> dict[str, str]:
    """Return `section.key` to its sentence."""
    found = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    return {f"{section}.{key}": text for section, keys in found.items() for key, text in keys.items()}


def sections_of(annotation: Any) -> list[type[BaseModel]]:
    """Return the models in an annotation: one for a plain section, several for a choice of kinds."""
    if get_origin(annotation) in (Union, UnionType):
        return [section for part in get_args(annotation) for section in sections_of(part)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in sections_of(part)]


def nested_models() -> list[type[BaseModel]]:
    """Return the models used as tables inside sections, such as an endpoint, in the order of their first use."""
    queue = [section for field in Config.model_fields.values() for section in sections_of(field.annotation)]
    found: list[type[BaseModel]] = []
    for model in queue:
        inner = [section for field in model.model_fields.values() for section in sections_of(field.annotation)]
        new = [section for section in inner if section not in found]
        found += new
        queue += new
    return found


def type_text(annotation: Any, metadata: Any = ()) -> str:
    """Return a type as a reader of TOML thinks of it, with its bounds."""
    bounds = ", ".join(f"{_BOUNDS[n]} {v:g}" for m in metadata for n, v in vars_of(m).items() if n in _BOUNDS)
    return f"{_plain_type(annotation)}{' ' + bounds if bounds else ''}"


def vars_of(constraint: Any) -> dict[str, Any]:
    """Return the bounds that a pydantic constraint carries."""
    return {name: getattr(constraint, name) for name in _BOUNDS if getattr(constraint, name, None) is not None}


def _plain_type(annotation: Any) -> str:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inside)
    if origin in (Union, UnionType):
        return " or ".join(_plain_type(part) for part in inside if part is not type(None))
    if origin in (list, tuple):
        return f"list of {_plain_type(inside[0])}"
    if origin is dict:
        return f"table of {_plain_type(inside[1])}"
    if inside and hasattr(annotation, "__metadata__"):
        return type_text(inside[0], [m for c in annotation.__metadata__ for m in getattr(c, "metadata", [c])])
    return {"int": "integer", "float": "number", "str": "text", "bool": "true or false"}.get(
        getattr(annotation, "__name__", ""), "any value"
    )


@cache
def attribute_docs(model: type) -> dict[str, str]:
    """Return the string below each attribute of a class, base classes included."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.split(".")[0] != "arise":
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(node, ast.ClassDef)
        for line, after in zip(node.body, node.body[1:], strict=False):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and is_text:
                found[line.target.id] = inspect.cleandoc(str(after.value.value))  # type: ignore[attr-defined]
    return found


# Command line


def cli_page() -> str:
    """Return the command-line reference: every command with its usage, parameters and example."""
    root = get_command(app)
    lines = [
        "# Command line",
        "",
        "Every command takes `--json` where it prints results, honours `NO_COLOR`, and ends with a fixed exit code. "
        "`arise --install-completion` sets up your shell.",
        "",
        "Options before the command, as in `arise --log-level debug train ...`:",
        "",
        *_parameters(root),
        *_exit_codes(),
    ]
    for path, command in commands(root):
        lines += [f"## `{' '.join(('arise', *path))}`", "", cell(command.help or ""), ""]
        if command.epilog:
            lines += ["```console", f"$ {command.epilog.removeprefix('Example: ')}", "```", ""]
        lines += _parameters(command)
    return "\n".join(lines)


def _exit_codes() -> list[str]:
    exits = importlib.import_module("arise.errors").Exit
    rows = [f"| {code.value} | {EXITS[code.name]} |" for code in exits]
    return ["| exit code | meaning |", "|---|---|", *rows, ""]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that runs something, with its words."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        elif not command.hidden:
            yield (*path, name), command


def _parameters(command: Any) -> list[str]:
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        option = parameter.opts[0].startswith("-")
        name = ", ".join(parameter.opts) if option else (parameter.metavar or parameter.name.upper())
        flag = getattr(parameter, "is_flag", False)
        default = parameter.default
        shown = "" if flag or default in (None, "", [], ()) else f" Default: `{default}`."
        needed = " Required." if parameter.required else ""
        rows.append(f"| `{name}` | {cell(getattr(parameter, 'help', '') or '')}{needed}{shown} |")
    return _table("| parameter | meaning |", rows) if rows else []


# Python API


def api_page() -> str:
    """Return the API reference: the public names of `arise`, the method library, the protocols and the types."""
    lines = ["# Python API", ""]
    public = [name for name in getattr(arise, "__all__", ()) if not inspect.ismodule(getattr(arise, name))]
    if public:
        lines += [
            "## `arise`",
            "",
            "The public API: these names stay, or a release note says otherwise. Each is imported on first use. "
            "[Extend ARISE](../guides/extend.md) shows how to use them.",
            "",
        ]
        lines += [line for name in public for line in _member(name, getattr(arise, name))]
    lines += [
        "## Method library",
        "",
        "Pure functions of numpy arrays, one per equation. Array suffixes are the paper's indices: `_I` rubrics, "
        "`_J` trajectories, `_U` tokens, `_X` tasks, `_D` task types, `_C` capabilities, `_G` groups. The [paper "
        "map](../paper.md) leads from each equation to its function, setting and test.",
        "",
    ]
    for info in pkgutil.iter_modules(arise.method.__path__):
        lines += _module(importlib.import_module(f"arise.method.{info.name}"), set(public))
    lines += [
        "## Ports",
        "",
        "The other protocols of `arise.ports`; those of the extension points are above.",
        "",
    ]
    ports = [(name, value) for name, value in _own_names(arise.ports) if name not in public]
    lines += [line for name, value in ports for line in _member(name, value)]
    lines += ["## Types", "", inspect.getdoc(arise.types) or "", ""]
    types = [name for name in arise.types.__all__ if name not in public]
    lines += [line for name in types for line in _member(name, getattr(arise.types, name))]
    return "\n".join(lines)


def _module(module: ModuleType, done: set[str]) -> list[str]:
    members = [(name, value) for name, value in _own_names(module) if name not in done]
    if not members:
        return []
    lines = [f"### `{module.__name__}`", "", inspect.getdoc(module) or "", ""]
    return lines + [line for name, value in members for line in _member(name, value, level=4)]


def _own_names(module: ModuleType) -> list[tuple[str, Any]]:
    own = [(name, value) for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [(name, value) for name, value in own if not name.startswith("_") and callable(value)]


def _member(name: str, value: Any, level: int = 3) -> list[str]:
    lines = [f"{'#' * level} `{name}`", ""]
    if not callable(value):
        return [*lines, f"`{value!r}`", ""]
    lines += [*_code(f"{name}{signature(value)}"), inspect.getdoc(value) or "", ""]
    if not isinstance(value, type):
        return lines
    docs = attribute_docs(value) if value.__module__.startswith("arise") else {}
    attributes = [field.name for field in fields(value)] if is_dataclass(value) else []
    lines += [f"- `{attribute}`: {cell(docs[attribute])}" for attribute in attributes if attribute in docs]
    for method, function in vars(value).items():
        shown = inspect.isfunction(function) or isinstance(function, classmethod | staticmethod)
        if method.startswith("_") or not shown:
            continue
        bound = getattr(value, method)
        lines += ["", *_code(f"{method}{signature(bound)}"), inspect.getdoc(bound) or ""]
    return [*lines, ""]


def _code(text: str) -> list[str]:
    return ["```python", text, "```", ""]


def signature(value: Any) -> str:
    """Return a signature with short type names, wrapped when it is long."""
    if inspect.isclass(value) and (getattr(value, "_is_protocol", False) or issubclass(value, BaseException)):
        return ""
    if inspect.isclass(value) and issubclass(value, Enum):
        return f": {', '.join(member.name for member in value)}"
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parts = [inspect.formatannotation(found.return_annotation)] if found.return_annotation is not found.empty else []
    returns = f" -> {_short(parts[0])}" if parts and not inspect.isclass(value) else ""
    arguments = [_short(str(p)) for p in found.parameters.values() if p.name != "self"]
    line = f"({', '.join(arguments)}){returns}"
    return line if len(line) < 70 else "(\n" + "".join(f"    {part},\n" for part in arguments) + f"){returns}"


def _short(text: str) -> str:
    """Drop module names, bounds of numbers, and the expansion of numpy's array aliases."""
    text = re.sub(r"\bAnnotated\[([^\[\],]+), [^\[\]]*\]", r"\1", text.replace("typing.", ""))
    text = re.sub(r"numpy\.ndarray\[tuple\[.*?\], numpy\.dtype\[([\w.]+)\]\]", r"NDArray[\1]", text)
    if "_SupportsArray" in text or "ArrayLike" in text:
        text = re.sub(r": .*", ": ArrayLike", text) if ":" in text else "ArrayLike"
    text = re.sub(r"<factory>|<object object at 0x[0-9a-f]+>", "...", text)
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+([A-Z]\w*|float64|bool_?|int64)\b", r"\1", text).replace("'", "")


def summary(value: type) -> str:
    """Return a class's docstring without line breaks inside its paragraphs."""
    text = inspect.cleandoc(value.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def cell(text: str) -> str:
    """Return a text that can stand in a table cell."""
    return " ".join(text.split()).replace("|", "\\|")
