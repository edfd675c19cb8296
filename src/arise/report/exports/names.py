"""File names for the names in a run: never a path, never a collision."""

import re
from hashlib import blake2b


def file_name(text: str, longest: int = 120) -> str:
    """Return a file name for any text: `k3/csv-7/0` becomes `k3_csv-7_0`; add a digest if characters are lost."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "_", text.replace("/", "_")).lstrip(".")[:longest]
    if plain == text.replace("/", "_") and plain:
        return plain
    return f"{plain}-{_digest(text)}"


def slug(text: str, longest: int) -> str:
    """Return lower-case words joined by single hyphens, cut between words."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept = ""
    for word in words:
        longer = f"{kept}-{word}" if kept else word
        if len(longer) > longest:
            break
        kept = longer
    return kept or _digest(text)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
