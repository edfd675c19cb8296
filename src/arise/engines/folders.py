"""Folders that appear whole or not at all: written as a draft, synced, then renamed into place."""

import os
import shutil
from pathlib import Path


def draft_beside(path: Path) -> Path:
    """An empty folder in which to prepare what will be called `path`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    return draft


def swap_in(draft: Path, path: Path) -> None:
    """Give a finished draft its name once all of it is on disk; what had the name before is removed only afterwards."""
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
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
