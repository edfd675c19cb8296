"""YAML between two lines of --- at the top of a Markdown file, and the sections of a task.md below it."""

import re
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import yaml

_FRONTMATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)\Z", re.DOTALL | re.MULTILINE)
_RESERVED = r"##\s+(prompt|role:[\w.-]+|scene:[\w.-]+|user-persona)[ \t]*\r?$"
_SECTION = re.compile(f"^{_RESERVED}", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(rf"^\\({_RESERVED})", re.IGNORECASE | re.MULTILINE)


def split_frontmatter(text: str) -> tuple[str, str] | None:
    """Return the YAML and the text below it; None if the text does not begin with YAML."""
    parts = _FRONTMATTER.match(text)
    return (parts[1], parts[2]) if parts else None


def sections(body: str) -> dict[str, str]:
    """Return the sections of a task.md by their reserved heading; other headings belong to the text around them.

    Text before the first reserved heading is the prompt, unless there is a section of that name.
    """
    found = list(_SECTION.finditer(body))
    bounds = pairwise([*found, None])
    texts = {here[1].lower(): body[here.end() : after.start() if after else None] for here, after in bounds if here}
    texts.setdefault("prompt", body[: found[0].start()] if found else body)
    return {name: _ESCAPED.sub(r"\1", text) for name, text in texts.items()}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml is ten times as fast
    """A loader that refuses a repeated key, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # the base class names the place
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return dict(super().construct_mapping(node, deep))


def load_yaml(text: str) -> Any:
    """Return the value of a YAML text; raise yaml.YAMLError also for a repeated key."""
    return yaml.load(text, _Loader)
