"""Files next to the database: their digests, and the integrity of checkpoints."""

import hashlib
import json
import shutil
from pathlib import Path

MANIFEST = "manifest.json"


def sha256_of(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checkpoint_damage(folder: Path, manifest_digest: str) -> str:
    """Return the first damaged file of a checkpoint folder and its damage; empty if the folder is intact."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return f"{manifest} is missing"
    if sha256_of(manifest) != manifest_digest:
        return f"{manifest} was changed or is torn"
    for name, digest in json.loads(manifest.read_text()).get("sha256", {}).items():
        path = folder / name
        if not path.is_file():
            return f"{path} is missing"
        if sha256_of(path) != digest:
            return f"{path} was changed or is torn"
    return ""


def remove_drafts(folder: Path) -> None:
    """Remove unreferenced partial files of a killed process."""
    for parent in (folder / "checkpoints", folder / "trajectories"):
        for draft in [*parent.glob(".*.draft"), *parent.glob(".*.old")]:
            if draft.is_dir():
                shutil.rmtree(draft, ignore_errors=True)
            else:
                draft.unlink(missing_ok=True)
