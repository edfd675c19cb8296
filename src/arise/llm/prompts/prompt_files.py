"""The files that ship with the prompts: templates, shared texts, schemas and examples."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def schema(name: str) -> Any:
    """Return a schema or specification that ships with the prompts, e.g. `diagnostics`."""
    return json.loads(read(f"schemas/{name}.json"))


def read(path: str) -> str:
    """Return the text of a shipped file."""
    return files(__package__).joinpath(path).read_text(encoding="utf-8")
