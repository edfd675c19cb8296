"""Exact JSON codec for the dataclasses: run state, stored rollouts and exports share it.

Arrays are stored as raw bytes and floats in Python's repr, so values round-trip exactly.
"""

import base64
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
_PLAIN = {str, int, float, bool, type(None)}


def to_json(value: Any) -> Any:
    """Convert a dataclass, enum, tuple, mapping or array to JSON values."""
    kind: Any = type(value)
    return value if kind in _PLAIN else _writer(kind)(value)


@cache
def _writer(kind: type) -> Callable[[Any], Any]:
    """Return the writer of one type; cached per type, since a commit writes tens of thousands of values."""
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, bool | int | float | str):
        return lambda value: value
    if issubclass(kind, np.ndarray):
        return _array_to_json
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return lambda value: {
            name: item if type(item := getattr(value, name)) in _PLAIN else to_json(item) for name in names
        }
    if issubclass(kind, Mapping):
        return lambda value: {str(to_json(key)): to_json(item) for key, item in value.items()}
    if issubclass(kind, list | tuple | set | frozenset):
        return lambda value: [item if type(item) in _PLAIN else to_json(item) for item in value]
    raise TypeError(f"cannot store a {kind.__name__}")


def _array_to_json(value: NDArray[Any]) -> dict[str, str]:
    return {"dtype": value.dtype.str, "data": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}


def from_json(kind: type[T], value: Any) -> T:
    """Rebuild a `kind` from JSON values; an error names the place that does not fit."""
    return typing.cast(T, _decode(kind, value, kind.__name__))


def _decode(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _decode(next(option for option in arguments if option is not type(None)), value, place)
    if origin is np.ndarray or kind is np.ndarray:
        return np.frombuffer(base64.b64decode(value["data"]), dtype=value["dtype"]).copy()
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_decode(arguments[0], item, f"{place}[{n}]") for n, item in enumerate(value))
        return tuple(_decode(part, item, place) for part, item in zip(arguments, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {
            _decode(arguments[0], key, place): _decode(arguments[1], item, f"{place}.{key}")
            for key, item in value.items()
        }
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast(type, kind), value, place)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return kind(*(_decode(part, item, place) for part, item in zip(_hints(kind).values(), value, strict=True)))
    try:
        return kind(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from None


def _decode_dataclass(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: expected an object, found {type(value).__name__}")
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise ValueError(f"{place}: unknown field {unknown[0]!r}")
    return kind(**{name: _decode(hints[name], item, f"{place}.{name}") for name, item in value.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
