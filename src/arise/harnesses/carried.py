"""Run a harness inside a task's own image: mount its installation and interpreter; require nothing of the image.

The interpreter of the host is started by the host's dynamic loader with the host's libraries. No environment variable
is involved, so the commands that the harness runs see the image as its author made it.
"""

import hashlib
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from arise.harnesses.install import folder_of, require
from arise.native.build import cache_folder
from arise.sandbox.runtime import copied, libraries_of, loaded

INNER = "/run/arise/harness"
INSTALL, RUNTIME = f"{INNER}-install", f"{INNER}-runtime"
_ASK = "import sys, sysconfig; print(sys.base_prefix); print(sysconfig.get_config_var('VERSION'))"
_RUN = (
    "import runpy, site, sys; del sys.argv[0]; site.addsitedir(sys.argv.pop(0)); "
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)


@dataclass(frozen=True)
class Carried:
    """What a sandbox on an image mounts for a harness, and the shell words that start its program there."""

    mounts: tuple[tuple[str, str], ...]
    """Host paths and where each is seen inside."""
    program: str


@cache
def carried(name: str) -> Carried:
    """Return how an installed harness is run inside an image; its interpreter is copied on first use."""
    spec, folder = require(name), folder_of(name)
    install = (str(folder), INSTALL)
    if spec.installer == "pip":
        mounts, line = _python(folder, spec.program)
        return Carried((install, *mounts), shlex.join(line))
    program = (folder / spec.program).resolve()
    inside = f"{INSTALL}/{program.relative_to(folder.resolve())}"
    if not _is_script(program):
        return Carried((install,), shlex.quote(inside))  # a compiled program, which uses the libc of the image
    node = Path(shutil.which("node") or "/usr/bin/node").resolve()
    runtime = copied(_cache(name, node), "node", node, libraries_of(node))
    return Carried((install, (str(runtime), RUNTIME)), shlex.join([*loaded(RUNTIME, "node"), inside]))


def _is_script(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(2) == b"#!"


def _python(folder: Path, program: str) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """Return the mounts and the command line of a Python program that is installed in its own environment."""
    asked = [str(folder / "bin" / "python"), "-I", "-c", _ASK]
    base, version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    packages = f"lib/python{version}"
    standard, python = Path(base, packages), Path(base, "bin", f"python{version}").resolve()
    cache = _cache(folder.name, python)
    libraries: dict[str, Path] = {}
    if not cache.is_dir():  # reads a few hundred modules, so only once
        for module in (python, *standard.glob("lib-dynload/*.so"), *(folder / packages).rglob("*.so")):
            libraries |= {name: path for name, path in libraries_of(module).items() if folder not in path.parents}
    runtime = copied(cache, "python3", python, libraries, packages)
    mounts = ((str(runtime), RUNTIME), (str(standard), f"{RUNTIME}/{packages}"))
    start = [*loaded(RUNTIME, "python3"), "-I", "-c", _RUN]
    return mounts, [*start, f"{INSTALL}/{packages}/site-packages", f"{INSTALL}/{program}"]


def _cache(name: str, program: Path) -> Path:
    """Return the folder for copies of an interpreter; an upgraded one, or another harness, has another."""
    facts = f"{program} {int(program.stat().st_mtime)} {(folder_of(name) / 'installed.json').stat().st_mtime_ns}"
    return cache_folder() / "runtime" / f"{name}-{hashlib.blake2b(facts.encode(), digest_size=6).hexdigest()}"
