"""Custom parts, named by import path: the kind `import` of every extension point."""

import re
from typing import Literal

from pydantic import Field, JsonValue, field_validator

from arise.config.base import Section

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Imported(Section):
    """A custom class or factory function, called with the arguments of its extension point and with `options`.

    Loading it runs its code. `arise config` and `arise doctor` check it before a run.
    """

    kind: Literal["import"] = "import"
    path: str
    """Import path `package.module:Name`; the module is installed, on PYTHONPATH or in the current folder."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Additional keyword arguments, passed unchanged."""

    @field_validator("path")
    @classmethod
    def _module_and_name(cls, path: str) -> str:
        if not _PATH.fullmatch(path):
            raise ValueError('expected "package.module:Name", a module, a colon and a name in it')
        return path
