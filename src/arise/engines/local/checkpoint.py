"""Checkpoints: an atomic folder of safetensors with a manifest of sha256 digests.

No random state is saved because there is none: sampling is a function of seed, conversation and position.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from arise.engines.folders import draft_beside, swap_in

FORMAT = 1
MANIFEST = "manifest.json"


def write_state(path: Path, files: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, int | str]) -> None:
    """Write named tensor files and facts into a new folder, renamed into place once everything is on disk."""
    draft = draft_beside(path)
    digests = {}
    for name, tensors in files.items():
        try:
            save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, draft / name)
        except SafetensorError as error:
            raise OSError(f"{draft / name}: {error}") from None
        digests[name] = _sha256(draft / name)
    manifest = {"format": FORMAT, "facts": dict(facts), "sha256": digests}
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
    swap_in(draft, path)


def read_state(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, int | str]]:
    """Read a checkpoint; raise if any byte changed."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        digests, facts = dict(manifest["sha256"]), dict(manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} holds no readable engine state ({MANIFEST}: {error}): use an earlier checkpoint"
        ) from error
    if manifest.get("format") != FORMAT:
        raise ValueError(f"{path} has state format {manifest.get('format')}, this version reads {FORMAT}")
    files = {}
    for name, digest in digests.items():
        if not (path / name).is_file() or _sha256(path / name) != digest:
            raise ValueError(f"{path / name} is missing or damaged: use an earlier checkpoint")
        try:
            files[name] = load_file(path / name)
        except SafetensorError as error:
            raise ValueError(f"{path / name} is not readable ({error}): use an earlier checkpoint") from error
    return files, facts


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
