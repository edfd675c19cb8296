"""Validate arrays: an error names the argument, the position and the value. Nothing is repaired."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def floats(name: str, values: ArrayLike, dimensions: int = 1) -> Floats:
    """`values` as a float64 array of the given number of dimensions."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {dimensions}-d, got shape {array.shape}")
    return array


def finite(name: str, values: ArrayLike) -> Floats:
    """`values` as a 1-d float64 array without nan or infinity."""
    array = floats(name, values)
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{place}] = {array[place]} is not finite; a missing value has no place in a group")
    return array


def verdicts(name: str, values: ArrayLike, dimensions: int = 2) -> Floats:
    """`values` as a float64 array of 0 (fail), 1 (pass) and nan (not applicable, or no valid verdict)."""
    array = floats(name, values, dimensions)
    bad = ~((array == 0.0) | (array == 1.0) | np.isnan(array))
    if bad.any():
        place = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"{name}{place} = {array[tuple(place)]} is not a verdict: use 1 (pass), 0 (fail) or nan (none)"
        )
    return array


def same_length(**arrays: NDArray[np.generic]) -> None:
    """Require that every named 1-d array has the length of the first."""
    (first, reference), *others = arrays.items()
    for name, array in others:
        if array.shape != reference.shape:
            raise ValueError(f"{name} has shape {array.shape}, but {first} has shape {reference.shape}")


def fraction(name: str, value: float) -> float:
    """Return `value` if it lies in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} = {value} must be between 0 and 1")
    return value


def unique(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return `values` as a tuple; duplicates are an error."""
    seen: dict[str, None] = {}
    for value in values:
        if value in seen:
            raise ValueError(f"{name} holds {value!r} twice")
        seen[value] = None
    return tuple(seen)
