"""Load the parts that a configuration names by import path, and check each against the port of its extension point.

Every problem raises one error with the field, the path and the remedy.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from arise.config import Config, Imported
from arise.errors import AriseError, Exit
from arise.method.credit import CreditRule
from arise.ports import Agent, Engine, Judge, Reflector, Sampler, SandboxPool, Tracker

GUIDE = 'the guide "Extend ARISE" lists the arguments and methods of every part'


class ExtensionPoint(NamedTuple):
    """An extension point: the protocol of a custom part, and the keyword arguments of its constructor."""

    port: type
    arguments: tuple[str, ...]


EXTENSION_POINTS = {
    "sampler": ExtensionPoint(Sampler, ("tasks", "random")),
    "credit": ExtensionPoint(CreditRule, ()),
    "judge": ExtensionPoint(Judge, ("seed",)),
    "reflector": ExtensionPoint(Reflector, ("seed",)),
    "agent": ExtensionPoint(Agent, ("engine", "limits", "sampling")),
    "policy": ExtensionPoint(Engine, ("model", "config")),
    "sandbox": ExtensionPoint(SandboxPool, ("size", "hidden")),
    "trackers": ExtensionPoint(Tracker, ("folder", "settings")),
    "--agent": ExtensionPoint(Agent, ("endpoint", "limits")),
}
"""By configuration section, or by option of a command."""


def check_imports(config: Config) -> list[Imported]:
    """Import and check every custom part without constructing it; return the checked parts."""
    sections = [section for section in EXTENSION_POINTS if section in Config.model_fields and section != "trackers"]
    found = [(section, getattr(config, section)) for section in sections]
    found += [("trackers", tracker) for tracker in config.trackers.use]
    chosen = [(section, part) for section, part in found if isinstance(part, Imported)]
    for section, part in chosen:
        _checked(section, part)
    return [part for _, part in chosen]


def imported(section: str, chosen: Imported, **arguments: Any) -> Any:
    """Construct the part that `chosen` names with the arguments of its extension point and its own options."""
    assert tuple(arguments) == EXTENSION_POINTS[section].arguments, section
    factory, field = _checked(section, chosen), _field(section)
    try:
        part = factory(**arguments, **chosen.options)
    except AriseError:
        raise
    except Exception as error:  # code of the user
        raise _refused(
            field, chosen, f"its constructor raised {_words(error)}", "correct the class or its options"
        ) from error
    if problem := next(_missing(part, EXTENSION_POINTS[section].port, of_instance=True), ""):
        raise _refused(field, chosen, problem, f"add what is missing; {GUIDE}")
    return part


def _field(section: str) -> str:
    return "trackers.use" if section == "trackers" else section


def _checked(section: str, chosen: Imported) -> Callable[..., Any]:
    """Import what `chosen` names and check it without calling it."""
    field, (port, arguments) = _field(section), EXTENSION_POINTS[section]
    factory: Any = _found(field, chosen)
    if not callable(factory):
        raise _refused(field, chosen, "it is not a class or a function", "name a class or a factory function")
    if taken := sorted(set(arguments) & set(chosen.options)):
        raise _refused(field, chosen, f"options.{taken[0]} is set by arise", f"remove {field}.options.{taken[0]}")
    try:
        inspect.signature(factory).bind(**dict.fromkeys((*arguments, *chosen.options)))
    except TypeError as error:
        remedy = (
            f"it is called with the keyword arguments {', '.join((*arguments, *chosen.options)) or 'none'}; {GUIDE}"
        )
        raise _refused(field, chosen, f"wrong signature: {error}", remedy) from None
    except ValueError:
        pass  # a C class without a signature: the call itself raises on wrong arguments
    if inspect.isclass(factory) and (problem := next(_missing(factory, port, of_instance=False), "")):
        raise _refused(field, chosen, problem, f"add what is missing; {GUIDE}")
    return factory  # type: ignore[no-any-return]


def _found(field: str, chosen: Imported) -> Any:
    module_name, _, name = chosen.path.partition(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # last: an installed package wins over a folder of the same name
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            remedy = f"install the package, add its folder to PYTHONPATH, or correct {field}.path"
            raise _refused(field, chosen, f"no module named {error.name!r}", remedy) from None
        remedy = "install what it imports"
        raise _refused(field, chosen, f"importing {module_name} raised {_words(error)}", remedy) from error
    except Exception as error:  # code of the user
        remedy = f"correct the module: python -c 'import {module_name}' shows the traceback"
        raise _refused(field, chosen, f"importing {module_name} raised {_words(error)}", remedy) from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise _refused(field, chosen, f"{module_name} has no attribute {name!r}", f"correct {field}.path")
        found = getattr(found, part)
    return found


def _missing(part: Any, port: type, of_instance: bool) -> Iterator[str]:
    """Yield the reasons why a class, or an instance of it, does not satisfy a port."""
    for name, wanted in _members(port):
        found = getattr(part, name, None)
        if not inspect.isfunction(wanted):  # a property: instances may set it in __init__
            if of_instance and not hasattr(part, name):
                yield f"it has no attribute {name!r}"
            continue
        if not callable(found) or (name == "__call__" and not of_instance and "__call__" not in _defined(part)):
            yield f"it has no method {name}{_shown(wanted)}"
        elif inspect.iscoroutinefunction(wanted) and not inspect.iscoroutinefunction(inspect.unwrap(found)):
            yield f"its method {name} must be defined with `async def`"
        elif not _accepts(found, wanted, of_instance):
            yield f"its method {name} must accept {_shown(wanted)}"


def _members(port: type) -> Iterator[tuple[str, Any]]:
    for base in port.__mro__:
        for name, value in vars(base).items():
            own = getattr(base, "_is_protocol", False) and (name == "__call__" or not name.startswith("_"))
            if own and (inspect.isfunction(value) or isinstance(value, property)):
                yield name, value


def _defined(part: type) -> set[str]:
    return {name for base in part.__mro__ if base is not object for name in vars(base)}


def _accepts(found: Any, wanted: Any, bound: bool) -> bool:
    """Return whether a method accepts the calls of the port's method: positional, and by name for defaults."""
    parameters = list(inspect.signature(wanted).parameters.values())[1:]
    required = [p for p in parameters if p.default is p.empty]
    optional = [p.name for p in parameters if p.default is not p.empty]
    this = () if bound else (None,)
    try:
        signature = inspect.signature(found)
        signature.bind(*this, *(None for _ in required))
        signature.bind(*this, *(None for _ in parameters))
        signature.bind(*this, *(None for _ in required), **dict.fromkeys(optional))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _shown(wanted: Any) -> str:
    names = [str(p).partition(":")[0] for p in list(inspect.signature(wanted).parameters.values())[1:]]
    return f"({', '.join(names)})"


def _words(error: Exception) -> str:
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _refused(field: str, chosen: Imported, problem: str, remedy: str) -> AriseError:
    what = f"{field}.path = {chosen.path!r}: {problem}"
    return AriseError("config", Exit.CONFIG, what, "nothing was started", remedy)
