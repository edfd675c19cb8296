"""Programs of the host that run inside an image and need nothing from it: its server, compiled if it can be static.

Others are copied with their libraries and started by the host's dynamic loader, as Python is where nothing is compiled.
"""

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arise.native.build import cache_folder
from arise.sandbox.layout import SERVER, SandboxUnavailable, inner_python
from arise.sandbox.native_server import INNER as NATIVE
from arise.sandbox.native_server import as_lines, static_server

INNER = "/run/arise/python"
_ASK = "import sys, sysconfig; print(sysconfig.get_path('stdlib')); print(sysconfig.get_config_var('VERSION'))"
_NEEDED = ("_ctypes", "_json", "_posixsubprocess", "_socket", "_struct", "fcntl", "resource", "select")


@dataclass(frozen=True)
class Runtime:
    """The paths to mount inside and the server's command line — `runtime().command(...)`."""

    shown: tuple[tuple[str, str], ...]
    """Host paths and where each is seen inside."""
    program: tuple[str, ...]
    native: bool

    def command(self, *arguments: str, guard: Mapping[str, Any] | None = None, workdir: str = "") -> list[str]:
        """Return the command line of the server, with the settings of its guard if it has one."""
        settings = "" if not guard else as_lines(guard) if self.native else json.dumps(guard)
        return [*self.program, *arguments, settings, *([workdir] if workdir else [])]


def loaded(inner: str, program: str) -> list[str]:
    """Return the command line that starts a copied program, whose folder is mounted at `inner`."""
    return [f"{inner}/lib/loader", "--library-path", f"{inner}/lib", f"{inner}/bin/{program}"]


def libraries_of(path: Path) -> dict[str, Path]:
    """Return the shared libraries that a program or module needs, by name, including the dynamic loader."""
    said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
    found = {name: Path(real) for name, real in re.findall(r"(\S+) => (/\S+)", said)}
    loader = re.search(r"^\s*(/\S*ld-\S+)", said, re.MULTILINE)
    if loader:
        found["loader"] = Path(loader[1])
    return found


@functools.cache
def runtime() -> Runtime:
    """Return the compiled server, or the Python one where it cannot be compiled."""
    server = static_server()
    return _python_runtime() if server is None else Runtime(((str(server), NATIVE),), (NATIVE,), native=True)


def _python_runtime() -> Runtime:
    """Return the host's interpreter and standard library, with the shared libraries copied to one cache folder."""
    python = Path(inner_python()[0]).resolve()
    said = subprocess.run([str(python), "-I", "-c", _ASK], capture_output=True, text=True, check=True).stdout.split()
    standard, version = Path(said[0]), said[1]
    modules = [path for name in _NEEDED for path in (standard / "lib-dynload").glob(f"{name}.*.so")]
    libraries: dict[str, Path] = {}
    for path in (python, *modules):
        libraries |= libraries_of(path)
    if "loader" not in libraries:
        raise SandboxUnavailable(f"{python} is not a dynamically linked program", "install the package python3")
    stamp = f"{version}-{int(python.stat().st_mtime)}-{os.getuid()}"
    folder = copied(cache_folder() / "runtime" / stamp, "python3", python, libraries, f"lib/python{version}")
    here = Path(__file__).parent
    package = str(Path(SERVER).parent.parent)
    return Runtime(
        (
            (str(folder), INNER),
            (str(standard), f"{INNER}/lib/python{version}"),
            (str(here / "inside"), f"{package}/inside"),
            (str(here / "usage.py"), f"{package}/usage.py"),
        ),
        (*loaded(INNER, "python3"), "-I", "-S", SERVER),
        native=False,
    )


def copied(folder: Path, name: str, program: Path, libraries: Mapping[str, Path], place: str = "") -> Path:
    """Return a folder with copies of a program and its libraries, created atomically.

    `place` is an empty folder in it, for what is mounted there.
    """
    if folder.is_dir():
        return folder
    draft = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(draft, ignore_errors=True)
    for part in ("bin", "lib", place):
        (draft / part).mkdir(parents=True, exist_ok=True)
    shutil.copy2(program, draft / "bin" / name)
    for library, path in libraries.items():
        shutil.copy2(path, draft / "lib" / library)
    try:
        draft.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(draft, ignore_errors=True)
    return folder
