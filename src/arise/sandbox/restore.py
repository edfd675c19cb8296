"""Undo changes of an attempt that could affect test.sh: system files, and files that programs run automatically.

In an image the agent is often root. Test.sh runs on the file system as the agent left it, so that installed software
and changed settings count, but with the image's original programs and libraries: a layer over the agent's restores
them. Hidden files are always reported.
"""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arise.ports import TreeRefused
from arise.sandbox.inside.writers import OTHERS, PYTEST, PYTHONS, SCRIPTED_TOOLS, SHELLS, TOOLS, WRAPPERS
from arise.sandbox.layers import find, is_whiteout, leads_to, names_in, opaque_mark

SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
LOADER = ("etc/ld.so.preload", "etc/ld.so.conf", "etc/ld.so.cache")
LOADER_FOLDER = "etc/ld.so.conf.d"
PYTHON_HOOKS = ("sitecustomize.py", "usercustomize.py")
ROOT_HOOKS = ("conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
FORBIDDEN = ("/tests", "/logs", "/proc", "/run/arise")
"""Where no link of an attempt may lead: the tests and the reward could be reached through it."""
MTAB = "etc/mtab"  # a link to /proc/mounts that container engines create
MAX_FILES = 200_000
_TRUSTED = (*WRAPPERS, *TOOLS, *SCRIPTED_TOOLS, *SHELLS)


@dataclass
class Restored:
    """What the layer restores or hides, by path, and the programs of the attempt with a trusted name."""

    back: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    loader_changed: bool = False

    def notes(self) -> tuple[str, ...]:
        """Return notes for readers of the output of test.sh; long lists are cut."""
        told = [f"{name} (a system file, in its original version)" for name in self.back]
        told += [
            f"{name} (takes the place of a program, is run by itself, or leads to the tests)" for name in self.hidden
        ]
        more = (f"and {len(told) - 20} more system files",) if len(told) > 20 else ()
        return (*told[:20], *more)


def restore(
    upper: Path, layers: Sequence[Path], target: Path, env: Mapping[str, str], fresh: Sequence[str]
) -> Restored:
    """Fill the folder `target` as a layer over the agent's `upper`; `fresh` names folders that must be empty."""
    image = _Image(layers, env)
    done = Restored()
    for count, (name, info) in enumerate(_walk(upper, "")):
        if count > MAX_FILES:
            raise TreeRefused(f"it wrote more than {MAX_FILES} files")
        if not any(folder.startswith(f"/{name}") or f"/{name}".startswith(f"{folder}/") for folder in fresh):
            _judge(name, info, upper, image, target, done)
    for folder in fresh:
        _empty(target, folder)
    return done


class _Image:
    """The content of the image itself, looked up by path."""

    def __init__(self, layers: Sequence[Path], env: Mapping[str, str]) -> None:
        self.layers = layers
        self.path = [folder.strip("/") for folder in env.get("PATH", "").split(":") if folder]
        self.programs = set().union(*(names_in(layers, folder) for folder in self.path)) if self.path else set()
        libraries = ("lib", "usr/lib", "usr/local/lib", "lib64", "usr/lib64")
        nested = [f"{base}/{name}" for base in libraries for name in names_in(layers, base) if "linux-gnu" in name]
        self.libraries = {
            name for folder in (*libraries, *nested) for name in names_in(layers, folder) if ".so" in name
        }


def _walk(upper: Path, name: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(upper / name) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        inner = f"{name}/{entry.name}" if name else entry.name
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            yield from _walk(upper, inner)
        else:
            yield inner, info


def _judge(name: str, info: os.stat_result, upper: Path, image: _Image, target: Path, done: Restored) -> None:
    """Decide about one file that the attempt created, changed or removed."""
    top, base, folder = name.partition("/")[0], os.path.basename(name), os.path.dirname(name)
    loader = name in LOADER or folder == LOADER_FOLDER
    done.loader_changed = done.loader_changed or loader
    if top in SYSTEM or loader:
        original = find(image.layers, name)
        if original is not None:
            if not original.is_dir() or original.is_symlink():
                _copy(original, _place(upper, target, name))
                done.back.append(f"/{name}")
            elif not is_whiteout(upper / name):
                raise TreeRefused(f"it put something else in place of the system folder /{name}")
            return
        if loader:
            _hide(upper, target, name, done)
            return
    if is_whiteout(upper / name):
        return
    shadows = (folder in image.path and base in image.programs) or (".so" in base and base in image.libraries)
    runs_itself = base in PYTHON_HOOKS or (folder == "" and base in ROOT_HOOKS) or _carries_code(upper / name, base)
    peeks = name != MTAB and stat.S_ISLNK(info.st_mode) and leads_to((upper, *image.layers), name, FORBIDDEN)
    if shadows or runs_itself or peeks:
        _hide(upper, target, name, done)
    elif info.st_mode & 0o111 and (base in _TRUSTED or base.startswith((*PYTHONS, *OTHERS, *PYTEST))):
        done.programs.append(f"/{name}")


def _carries_code(path: Path, base: str) -> bool:
    """Return whether Python or pytest would run code at startup because of this file."""
    if base == "entry_points.txt":
        return "pytest11" in _text(path)
    if not base.endswith(".pth") or base.startswith("__editable__"):
        return False
    return any(line.startswith(("import ", "import\t")) for line in _text(path).splitlines())


def _text(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(fd, "rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""


def _place(upper: Path, target: Path, name: str) -> Path:
    """Return a file's path in the layer; create its parent folders with the modes and owners the attempt left."""
    path = Path(target, name)
    for folder in reversed(path.relative_to(target).parents[:-1]):
        if not (target / folder).is_dir():
            info = (upper / folder).lstat()
            (target / folder).mkdir()
            os.chown(target / folder, info.st_uid, info.st_gid)
            (target / folder).chmod(stat.S_IMODE(info.st_mode))
    return path


def _copy(original: Path, path: Path) -> None:
    shutil.copy2(original, path, follow_symlinks=False)
    info = original.lstat()
    os.chown(path, info.st_uid, info.st_gid, follow_symlinks=False)


def _hide(upper: Path, target: Path, name: str, done: Restored) -> None:
    os.mknod(_place(upper, target, name), stat.S_IFCHR, os.makedev(0, 0))
    done.hidden.append(f"/{name}")


def _empty(target: Path, folder: str) -> None:
    """Create a folder that hides everything the attempt put at its path or above it."""
    path = target / folder.strip("/")
    path.mkdir(mode=0o755, parents=True, exist_ok=True)
    os.setxattr(path, opaque_mark(), b"y")
