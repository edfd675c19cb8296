"""Environments of other libraries: vLLM, AReaL and verl each need one, separate from that of ARISE."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from arise.engines.local.pretrained import cache_root

RECIPES = Path(__file__).with_name("environments.toml")
MARK = "arise-environment.json"
PYTHONS = ((3, 11), (3, 12))
"""The libraries refuse Python 3.13."""


@dataclass(frozen=True)
class Recipe:
    """How an environment is made; `{library}` in its lists stands for the distribution at its version."""

    name: str
    about: str
    distribution: dict[str, str]
    version: str
    first: tuple[str, ...]
    then: tuple[str, ...]
    without_requirements: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    gib: int = 3

    def digest(self, device: str) -> str:
        """Return a digest of what is installed; an environment with another digest is installed again."""
        return blake2b(json.dumps([device, vars(self)], sort_keys=True).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Installed:
    """One line of `arise engines list`; `problem` is empty where the environment can be used."""

    name: str
    about: str
    folder: Path
    problem: str


def recipes() -> dict[str, Recipe]:
    """Return the recipes of all environments, by name."""
    found = tomllib.loads(RECIPES.read_text())
    lists = ("first", "then", "without_requirements", "remove")
    typed: dict[str, dict[str, Any]] = {
        name: {key: tuple(value) if key in lists else value for key, value in facts.items()}
        for name, facts in found.items()
    }
    return {name: Recipe(name=name, **facts) for name, facts in typed.items()}


def default_folder(name: str) -> Path:
    """Return where `install` puts an environment by default."""
    return cache_root() / "engines" / name


def listed() -> list[Installed]:
    """Return every environment and whether it can be used from its default place."""
    return [
        Installed(name, recipe.about, default_folder(name), problem_of(name, default_folder(name)))
        for name, recipe in recipes().items()
    ]


def python_of(name: str, folder: str = "", device: str = "cuda") -> Path:
    """Return the interpreter of an environment; raises ValueError with the remedy if it cannot be used."""
    place = Path(folder).expanduser() if folder else default_folder(name)
    if problem := problem_of(name, place) or _problem_of_device(name, place, device):
        wanted = (f" --dir {place}" if folder else "") + (" --device cpu" if device == "cpu" else "")
        raise ValueError(f"{problem}: run `arise engines install {name}{wanted}`")
    return place / "bin" / "python"


def _problem_of_device(name: str, folder: Path, device: str) -> str:
    """Return why an environment cannot compute on a device; only those made by `install` are known."""
    mark = folder / MARK
    made = json.loads(mark.read_text()) if mark.is_file() else {}
    found = made.get("device", device)
    return "" if found == device else f"{folder} holds {name} for {found}, policy.device is {device!r}"


def problem_of(name: str, folder: Path) -> str:
    """Return why an environment cannot be used, or an empty string."""
    recipe = recipes()[name]
    if not (folder / "bin" / "python").exists():
        return f"{name} is not installed in {folder}"
    for distribution in set(recipe.distribution.values()):
        stem = distribution.replace("-", "_")
        for found in folder.glob(f"lib/python*/site-packages/{stem}-*.dist-info"):
            version = found.name.removeprefix(f"{stem}-").removesuffix(".dist-info")
            # Only a default environment must have been made by ARISE; a folder that the user names may come from
            # anywhere.
            unfinished = folder == default_folder(name) and not (folder / MARK).is_file()
            if version == recipe.version:
                return f"the installation of {name} in {folder} was not finished" if unfinished else ""
            return f"{folder} holds {name} {version}, ARISE works with {recipe.version}"
    return f"{folder} is an environment without {name}"


def gpus_here() -> int:
    """Return how many NVIDIA GPUs this machine shows."""
    return len([device for device in Path("/dev").glob("nvidia*") if device.name.removeprefix("nvidia").isdigit()])


def install(name: str, folder: Path, device: str, say: Callable[[str], None]) -> Path:
    """Make an environment; one that is complete and of the same recipe is kept. Raises ValueError with the reason."""
    recipe = recipes()[name]
    mark = folder / MARK
    if mark.is_file() and json.loads(mark.read_text()).get("recipe") == recipe.digest(device):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free / 2**30
    if free < recipe.gib + 1:
        raise ValueError(f"{folder} needs about {recipe.gib + 1} GiB of disk, {free:.1f} are free: name another --dir")
    if folder.exists() and not (folder / "pyvenv.cfg").is_file() and any(folder.iterdir()):
        raise ValueError(f"{folder} exists and is not an environment: name another --dir")
    if device == "cuda" and not gpus_here():
        say(f"{name}: no NVIDIA GPU is visible here; for a machine without one, add `--device cpu`")
    mark.unlink(missing_ok=True)
    _call([_interpreter(), "-m", "venv", str(folder)])
    library = f"{recipe.distribution[device]}=={recipe.version}"
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    steps = (
        (["install"], recipe.first),
        (["install", "--no-deps"], recipe.without_requirements),
        (["install"], recipe.then),
        (["uninstall", "--yes"], recipe.remove),
    )
    for words, packages in steps:
        if packages:
            named = [package.format(library=library) for package in packages]
            say(f"{name}: pip {words[0]} {', '.join(named[:4])}{' ...' if len(named) > 4 else ''}")
            _call([*pip, *words, *named])
    mark.write_text(json.dumps({"recipe": recipe.digest(device), "library": library, "device": device}))
    return folder


def _interpreter() -> str:
    if sys.version_info[:2] in PYTHONS:
        return sys.executable
    for major, minor in PYTHONS:
        if found := shutil.which(f"python{major}.{minor}"):
            return found
    raise ValueError("these libraries need Python 3.11 or 3.12, and none is on the path: install one of them")


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise ValueError(f"{' '.join(command[:6])} ... failed: {(lines or ['no message'])[-1]}")
