"""Keys of a task file that are probably misspelt; other unknown keys are ignored, as Harbor does."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from arise.tasks import schema
from arise.tasks.problem import TaskProblem

_CLOSE = 0.77
_ELSEWHERE: dict[type[BaseModel], tuple[str, ...]] = {
    schema.TaskFile: (
        *("version", "sandbox", "oracle", "source", "reward", "name", "image"),
        *("profile", "profiles", "agents", "scenes", "user", "benchflow"),
    ),
    schema.AboutSection: ("version", "description", "authors", "keywords"),
    schema.EnvironmentSection: ("allow_internet", "memory", "storage", "image", "bugswarm_image_tag"),
    schema.VerifierSection: ("sandbox_mode", "sandbox", "judge", "memory"),
}
"""Keys of the formats that the model does not have under this name."""
_OTHER_NAMES = {"sandbox": "environment", "oracle": "solution"}


def misspelt(given: Mapping[str, object], path: Path) -> list[TaskProblem]:
    """Return a problem for each unknown key that resembles a known one."""
    return [
        TaskProblem(path, f"{name}: is no key of the format; did you mean {meant!r}?", "correct the key")
        for name, meant in unknown(given)
        if meant
    ]


def unknown(given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each key that the formats do not have, with the known key that it resembles or ""."""
    yield from _unknown(given, schema.TaskFile, "")


def _unknown(given: Mapping[str, object], model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    known = [*model.model_fields, *_ELSEWHERE.get(model, ())]
    for key, value in given.items():
        if key not in known:
            if model is not schema.SolutionSection or not isinstance(value, str):  # variables may be set there directly
                yield f"{prefix}{key}", next(iter(difflib.get_close_matches(str(key), known, 1, _CLOSE)), "")
            continue
        field = model.model_fields.get(_OTHER_NAMES.get(key, key))
        inner = _model_in(field.annotation) if field is not None else None
        for part in value if isinstance(value, list) else [value]:
            if inner is not None and isinstance(part, Mapping):
                yield from _unknown(part, inner, f"{prefix}{key}.")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field holds, alone, optional or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType, Annotated):
        return next(filter(None, map(_model_in, get_args(annotation))), None)
    return None
