"""The server inside a sandbox as a C program, which starts at once; `inside/server.py` is the fallback."""

import functools
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from arise.native.build import build
from arise.sandbox.inside.writers import OTHERS, PYTEST, PYTHONS, SCRIPTED_TOOLS, SHELLS, SYSTEM, TOOLS, WRAPPERS

INNER = "/run/arise/server"
_COMMON = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror=format-security", "-fstack-protector-strong")
_FLAGS = ((*_COMMON, "-static"), (*_COMMON, "-D_FORTIFY_SOURCE=2"))
_USAGE = 2
_PT_INTERP = 3


@functools.cache
def native_server() -> Path | None:
    """Return the compiled server; None where it cannot be compiled."""
    return build("server", Path(__file__).parent / "native", _FLAGS, _works)


@functools.cache
def static_server() -> Path | None:
    """Return the compiled server if it needs no library, so that it runs in any image."""
    server = native_server()
    return server if server is not None and not _is_dynamic(server.read_bytes()) else None


def _is_dynamic(program: bytes) -> bool:
    """Return whether an ELF program of 64 bits names a dynamic loader."""
    (offset,), (size, count) = struct.unpack_from("<Q", program, 32), struct.unpack_from("<HH", program, 54)
    return _PT_INTERP in (struct.unpack_from("<I", program, offset + size * at)[0] for at in range(count))


def _works(program: Path) -> bool:
    return subprocess.run([program], stdin=subprocess.DEVNULL, check=False).returncode == _USAGE


def as_lines(settings: Mapping[str, Any]) -> str:
    """Return the guard's settings and the lists of its rules as the C server reads them, one `name value` per line."""
    values: dict[str, Iterable[str]] = {
        **{name: (settings[name],) for name in ("logs", "tests", "limits", "notify")},
        "call": (f"{number} {name}" for number, name in settings["calls"].items()),
        "system": (*SYSTEM, *(f"{path}/" for path in settings["system"])),
        "added": settings.get("added", ()),
        "wrapper": WRAPPERS,
        "tool": sorted(TOOLS),
        "scripted": SCRIPTED_TOOLS,
        "shell": SHELLS,
        "python": PYTHONS,
        "other": OTHERS,
        "pytest": PYTEST,
    }
    return "\n".join(f"{name} {value}" for name, given in values.items() for value in given)
