"""Install Harbor into its own environment, with Python 3.12 or later."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.native.build import cache_folder

LEAST = (3, 12)
PACKAGES = ("harbor>=0.24,<0.26", "podman-compose>=1.3")
"""podman-compose lets Harbor's `podman` environment work where podman has no compose plugin."""
REMEDY = "arise harbor install"
MARKER = "installed.json"
INSTALL_SECONDS = 1800.0
PROBE_SECONDS = 30.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class HarborStatus:
    """Whether Harbor can be used — `HarborStatus(True, "harbor 0.25.0 ...")` — and the remedy if not."""

    usable: bool
    said: str
    remedy: str = ""


def folder() -> Path:
    """Return the folder of Harbor's environment."""
    return cache_folder() / "harbor"


def python() -> Path:
    """Return the interpreter of Harbor's environment."""
    return folder() / "bin" / "python"


def status() -> HarborStatus:
    """Return whether Harbor is installed as this version of ARISE needs it."""
    try:
        found = json.loads((folder() / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return HarborStatus(False, "Harbor is not installed", REMEDY)
    if found.get("packages") != list(PACKAGES) or not python().exists():
        return HarborStatus(False, f"Harbor is installed as {' '.join(found.get('packages', ()))}", REMEDY)
    return HarborStatus(True, f"harbor {found['version']} with Python {found['python']} in {folder()}")


def require() -> Path:
    """Return Harbor's interpreter; raise with the command that installs it if it is not there."""
    found = status()
    if not found.usable:
        raise AriseError("harbor", Exit.ENGINE, found.said, "nothing was started", found.remedy)
    return python()


def _candidates(named: str) -> Iterator[str]:
    if named:
        yield named
        return
    yield sys.executable
    yield from (f"python3.{minor}" for minor in range(15, LEAST[1] - 1, -1))
    yield "python3"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted((str(path) for path in pyenv.glob("versions/3.*/bin/python")), reverse=True)


def find_python(named: str = "") -> tuple[str, str] | None:
    """Return a Python that can run Harbor with its version, `named` or any of this machine; None if there is none."""
    for candidate in _candidates(named):
        program = shutil.which(candidate)
        if program is None:
            continue
        line = [program, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:3], sep='.')"]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        said = done.stdout.strip()
        if not done.returncode and tuple(map(int, said.split(".")[:2])) >= LEAST:
            return program, said
    return None


def install(say: Say, named: str = "") -> HarborStatus:
    """Install Harbor; first remove the remains of an interrupted installation."""
    if status().usable:
        return status()
    found = find_python(named)
    if found is None:
        what = f"{named} is not a Python of version 3.12 or later" if named else "no Python 3.12 or later was found"
        remedy = "install one (for example `uv python install 3.12`) and name it with --python PATH"
        raise AriseError("harbor", Exit.ENGINE, what, "nothing was installed", remedy)
    here = folder()
    shutil.rmtree(here, ignore_errors=True)
    here.parent.mkdir(parents=True, exist_ok=True)
    say(f"installing {' '.join(PACKAGES)} into {here}, with Python {found[1]}")
    _run([found[0], "-m", "venv", str(here)])
    _run([str(python()), "-m", "pip", "install", "--quiet", "--upgrade", "pip"])
    _run([str(python()), "-m", "pip", "install", "--quiet", *PACKAGES])
    version = _run([str(python()), "-c", "from importlib.metadata import version; print(version('harbor'))"]).strip()
    marker = {"packages": list(PACKAGES), "version": version, "python": found[1]}
    (here / MARKER).write_text(json.dumps(marker), encoding="utf-8")
    return status()


def _run(line: list[str]) -> str:
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        said, failed = done.stdout, done.stderr.strip()[-1000:] if done.returncode else ""
    except subprocess.TimeoutExpired:
        said, failed = "", f"{line[0]} did not end within {INSTALL_SECONDS:g} s"
    if failed:
        remedy = "check the network or the package registry, then repeat the command"
        what = f"Harbor could not be installed: {failed}"
        raise AriseError("harbor", Exit.ENGINE, what, "it cannot be used", remedy)
    return said
