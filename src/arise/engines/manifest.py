"""Saved states of an engine: a folder of files with a manifest of their digests; and a digest of a model."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

MANIFEST = "manifest.json"
FORMAT = 1
SAMPLED_BYTES = 1 << 20


def write_manifest(folder: Path, facts: Mapping[str, int | str]) -> None:
    """Record the digest of every file of the folder, and the facts."""
    digests = {file.name: _sha256(file) for file in sorted(folder.iterdir())}
    manifest = {"format": FORMAT, "facts": dict(facts), "sha256": digests}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))


def read_manifest(folder: Path) -> dict[str, int | str]:
    """Return the facts of a saved state; raise if any file changed."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        digests, facts = dict(manifest["sha256"]), dict(manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{folder} holds no readable engine state ({MANIFEST}: {error}): use an earlier checkpoint"
        ) from error
    if manifest.get("format") != FORMAT:
        raise ValueError(f"{folder} has state format {manifest.get('format')}, this version reads {FORMAT}")
    for name, digest in digests.items():
        if not (folder / name).is_file() or _sha256(folder / name) != digest:
            raise ValueError(f"{folder / name} is missing or damaged: use an earlier checkpoint")
    return facts


def model_digest(folder: str) -> str:
    """Return a digest of a model: its configuration, and of its weight files the sizes and both ends."""
    digest = hashlib.sha256()
    files = sorted(Path(folder).glob("*.safetensors")) + sorted(Path(folder).glob("config.json"))
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(SAMPLED_BYTES))
            stream.seek(max(0, size - SAMPLED_BYTES))
            digest.update(stream.read())
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
