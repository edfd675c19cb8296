"""Atomic folders: written as a draft, synced, then renamed into place."""

import os
import shutil
from pathlib import Path


def draft_beside(path: Path) -> Path:
    """Create an empty draft folder next to `path`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    return draft


def swap_in(draft: Path, path: Path) -> None:
    """Rename a finished draft into place once it is on disk; the previous folder is removed afterwards."""
    for written in (*draft.rglob("*"), draft):
        sync(written)
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    draft.rename(path)
    sync(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync(path: Path) -> None:
    """Fsync a file or folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
