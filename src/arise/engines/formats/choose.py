"""Choose the format of a model: by its family if known, else by its chat template."""

from collections.abc import Mapping
from typing import Any

from arise.engines.formats.families import families, family_format, family_of
from arise.engines.formats.generic import GenericFormat
from arise.ports import Format, FormatError


def choose_format(tokenizer: Any, name: str = "auto", options: Mapping[str, Any] | None = None) -> Format:
    """Create the format that `model.format` names; `auto` selects a family only if the model's name identifies it."""
    if name == "auto":
        family = family_of(tokenizer)
        return family_format(family, tokenizer, options) if family else GenericFormat(tokenizer, options)
    if name == "generic":
        return GenericFormat(tokenizer, options)
    known = families()
    if name in known:
        return family_format(name, tokenizer, options)
    listed = f"or one of: {', '.join(known)}" if known else "families need `pip install arise-rl[formats]`"
    raise FormatError(f"model.format = {name!r} is unknown: use 'auto', 'generic', {listed}")
