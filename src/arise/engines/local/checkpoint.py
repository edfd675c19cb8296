"""Checkpoints: an atomic folder of safetensors with a manifest of sha256 digests.

No random state is saved because there is none: sampling is a function of seed, conversation and position.
"""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from arise.engines.folders import draft_beside, swap_in
from arise.engines.manifest import MANIFEST, read_manifest, write_manifest


def write_state(path: Path, files: Mapping[str, Mapping[str, Tensor]], facts: Mapping[str, int | str]) -> None:
    """Write named tensor files and facts into a new folder, renamed into place once everything is on disk."""
    draft = draft_beside(path)
    for name, tensors in files.items():
        try:
            save_file({key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}, draft / name)
        except SafetensorError as error:
            raise OSError(f"{draft / name}: {error}") from None
    write_manifest(draft, facts)
    swap_in(draft, path)


def read_state(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, int | str]]:
    """Read a checkpoint; raise if any byte changed."""
    facts, files = read_manifest(path), {}
    for file in path.iterdir():
        if file.name != MANIFEST:
            try:
                files[file.name] = load_file(file)
            except SafetensorError as error:
                raise ValueError(f"{file} is not readable ({error}): use an earlier checkpoint") from error
    return files, facts
