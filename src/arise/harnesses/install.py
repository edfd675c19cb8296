"""Install harnesses, each into its own folder of the ARISE cache; sandboxes mount it read-only."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from arise.engines.local.pretrained import cache_root
from arise.errors import AriseError, Exit
from arise.harnesses.spec import Harness, harness, names

MARKER = "installed.json"
INSTALL_SECONDS = 1800.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Installation:
    """Whether a harness can be used on this machine, and the remedy if not."""

    name: str
    usable: bool
    said: str
    remedy: str = ""


def folder_of(name: str) -> Path:
    """Return the installation folder of a harness."""
    return cache_root() / "harnesses" / name


def require(name: str) -> Harness:
    """Return a built-in harness; raise an error that lists the available ones if the name is unknown."""
    try:
        return harness(name)
    except KeyError:
        raise AriseError(
            "harness",
            Exit.CONFIG,
            f"there is no harness {name!r}",
            "nothing was installed",
            f"name one of: {', '.join(names())}; for any other set agent.kind = 'command'",
        ) from None


def status(name: str) -> Installation:
    """Return whether a harness is installed as its specification requires."""
    spec, folder = require(name), folder_of(name)
    remedy = f"arise harness install {name}"
    if spec.installer == "none":
        return Installation(name, True, "needs no installation")
    if not (folder / MARKER).is_file() or not (folder / spec.program).exists():
        return Installation(name, False, "not installed", remedy)
    packages = json.loads((folder / MARKER).read_text()).get("packages")
    if packages != list(spec.packages):
        return Installation(
            name, False, f"installed as {' '.join(packages or ())}, wanted {' '.join(spec.packages)}", remedy
        )
    missing = missing_program(spec)
    return Installation(
        name, not missing, missing or f"{' '.join(spec.packages)} in {folder}", _get_node if missing else ""
    )


_get_node = "install Node.js 20 or newer with npm"


def missing_program(spec: Harness) -> str:
    """Return the name of the missing program that a harness requires, or ""."""
    return "Node.js is not installed" if spec.installer == "npm" and shutil.which("node") is None else ""


def seen_paths(name: str) -> tuple[Path, ...]:
    """Return the folders that a sandbox must mount to run a harness."""
    spec = require(name)
    if spec.installer == "none":
        return ()
    program = Path(sys.base_prefix if spec.installer == "pip" else shutil.which("node") or "").resolve()
    outside = () if program.is_relative_to("/usr") else (program if spec.installer == "pip" else program.parents[1],)
    return (folder_of(name), *outside)


def install(name: str, say: Say) -> Installation:
    """Install a harness; first remove the remains of an interrupted installation."""
    spec, folder = require(name), folder_of(name)
    if spec.installer == "none" or status(name).usable:
        return status(name)
    if spec.installer == "npm" and shutil.which("npm") is None:
        raise AriseError(
            "harness", Exit.ENGINE, f"{name} needs npm, which is not here", "nothing was installed", _get_node
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"installing {' '.join(spec.packages)} into {folder}")
    if spec.installer == "pip":
        _run(name, [sys.executable, "-m", "venv", str(folder)])
        _run(name, [str(folder / "bin" / "pip"), "install", "--quiet", *spec.packages])
    else:
        _run(name, ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *spec.packages])
    if not (folder / spec.program).exists():
        raise _failed(name, f"its packages hold no {spec.program}")
    (folder / MARKER).write_text(json.dumps({"packages": list(spec.packages)}))
    return status(name)


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise _failed(name, f"{command[0]} did not end within {INSTALL_SECONDS:g} s") from None
    if done.returncode:
        raise _failed(name, (done.stderr or done.stdout).strip()[-1000:])


def _failed(name: str, why: str) -> AriseError:
    return AriseError(
        "harness",
        Exit.ENGINE,
        f"{name} could not be installed: {why}",
        "it cannot be used",
        "check the network or the package registry, then repeat the command",
    )
