"""The /etc of sandboxes as one folder of the cache: one mount instead of seven, since each mount slows every start."""

import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from arise.native.build import cache_folder

OWN = Path(__file__).parent / "etc"
OF_THE_HOST = ("ld.so.cache", "alternatives", "localtime")
"""Files and folders of the machine's /etc that its programs need."""


@functools.cache
def etc_folder(host: Path = Path("/etc")) -> Path | None:
    """Return the folder with what the host has now; None where the cache cannot be written."""
    sources = [*sorted(OWN.iterdir()), *(path for name in OF_THE_HOST if (path := host / name).exists())]
    folder = cache_folder() / "etc" / _digest(sources)
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as draft:
            made = Path(draft, "etc")
            made.mkdir(0o755)
            for path in sources:
                if path.is_dir():
                    shutil.copytree(path, made / path.name, symlinks=True)
                else:
                    shutil.copyfile(path, made / path.name)
            if not folder.is_dir():
                made.rename(folder)
    except OSError:
        return folder if folder.is_dir() else None
    return folder


def _digest(sources: list[Path]) -> str:
    found = hashlib.sha256()
    for path in sources:
        inner = sorted(path.iterdir()) if path.is_dir() else [path]
        for each in inner:
            content = os.readlink(each).encode() if each.is_symlink() and path.is_dir() else each.read_bytes()
            found.update(f"{path.name}/{each.name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]
