"""Environments of `arise engines install`, as far as ARISE looks at one before it starts anything in it."""

import json
from pathlib import Path

from arise.engines.environments import MARK, recipes


def make_environment(cache: Path, name: str, device: str = "cpu", version: str = "") -> None:
    """Make the environment of a library in a cache, without the library."""
    folder, recipe = cache / "engines" / name, recipes()[name]
    stem = recipe.distribution[device].replace("-", "_")
    place = folder / "lib" / "python3.11" / "site-packages" / f"{stem}-{version or recipe.version}.dist-info"
    place.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").write_text("")
    (folder / MARK).write_text(json.dumps({"device": device}))
