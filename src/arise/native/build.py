"""Compile C sources once per machine, into the cache folder; every user of them has a plain fallback."""

import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SWITCH = "ARISE_NATIVE"
"""Environment variable; 0 uses the fallbacks."""
COMPILERS = ("cc", "gcc", "clang")
BUILD_SECONDS = 120.0
COST = "sampling takes about 3 times the processor time, the start of a sandbox 2 to 5 times"
REMEDY = "apt-get install gcc libc6-dev"

log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the cache folder of ARISE — ARISE_CACHE, else `arise` below XDG_CACHE_HOME or `~/.cache`."""
    if own := os.environ.get("ARISE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arise"


def build(
    name: str, folder: Path, flags: Sequence[Sequence[str]], works: Callable[[Path], bool], key: str = ""
) -> Path | None:
    """Return a program compiled from the C files of a folder, with the first list of flags that works.

    Return None without a compiler, without a writable cache, or with ARISE_NATIVE=0. `key` distinguishes what the flags
    do not say, such as the processor that -march=native means.
    """
    if reason := obstacle():
        _tell(reason)
        return None
    compiler = _compiler()
    sources = sorted(folder.glob("*.c"))
    try:
        target = cache_folder() / "native" / f"{name}-{_digest([*sources, *folder.glob('*.h')], compiler, flags, key)}"
        if target.exists() and works(target):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as draft:
            made = Path(draft, name)
            for chosen in flags:
                if _compile([compiler, *chosen, "-o", str(made), *map(str, sources), *_libraries(chosen)]) and works(
                    made
                ):
                    made.replace(target)  # atomic, because another process may build it at the same time
                    return target
        _tell(f"{compiler} cannot compile the sources of ARISE")
    except OSError as error:
        _tell(f"the cache folder cannot be written ({error})")
    return None


def obstacle() -> str:
    """Return why nothing is compiled on this machine, "" if a compiler is there and may be used."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    return "" if _compiler() else f"no C compiler ({', '.join(COMPILERS)}) is on the PATH"


def _compiler() -> str:
    return next(filter(None, map(shutil.which, COMPILERS)), "")


@functools.cache
def _tell(reason: str) -> None:
    """Report once per process what running without compiled code costs."""
    remedy = "" if reason.startswith(SWITCH) else f"; to fix it: {REMEDY}"
    log.info("%s: plain code runs instead of compiled code, %s%s", reason, COST, remedy)


def _libraries(flags: Sequence[str]) -> list[str]:
    """Return the libraries that follow the sources."""
    return ["-lm"] if "-shared" in flags else []


def _compile(line: list[str]) -> bool:
    try:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _digest(files: Sequence[Path], compiler: str, flags: Sequence[Sequence[str]], key: str) -> str:
    found = hashlib.sha256(repr((platform.machine(), os.path.realpath(compiler), flags, key)).encode())
    for path in sorted(files):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]
