"""Unpack archives of trajectories into a temporary folder, without links, path traversal or zip bombs."""

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO

from arise.analyze.files import Unreadable
from arise.analyze.zipped import ZSTANDARD, read_member

MOST_BYTES = 16 * 1024**3
MOST_MEMBERS = 500_000
BLOCK = 1 << 20
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tbz2", ".txz")


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive, by its name and its content."""
    if not path.name.lower().endswith(SUFFIXES):
        return False
    try:
        return zipfile.is_zipfile(path) if path.suffix.lower() == ".zip" else tarfile.is_tarfile(path)
    except OSError:
        return False


@contextmanager
def unpacked(path: Path, most_bytes: int = MOST_BYTES) -> Iterator[Path]:
    """Unpack the regular files of an archive into a temporary folder; skip members with outside paths."""
    with tempfile.TemporaryDirectory(prefix="arise-analyze-") as name:
        folder = Path(name)
        try:
            if path.suffix.lower() == ".zip":
                _unzip(path, folder, most_bytes)
            else:
                _untar(path, folder, most_bytes)
        except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise Unreadable(f"archive cannot be read: {error}") from None
        yield folder


def _unzip(path: Path, folder: Path, room: int) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _refuse_many(len(members))
        for member in members:
            target = _target(folder, member.filename)
            link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if target is None or member.is_dir() or link:
                continue
            if member.compress_type == ZSTANDARD:
                room = _copy(BytesIO(read_member(archive, member.filename, room)), target, room)
                continue
            with archive.open(member) as source:
                room = _copy(source, target, room)


def _untar(path: Path, folder: Path, room: int) -> None:
    with tarfile.open(path, "r:*") as archive:
        for number, member in enumerate(archive):
            _refuse_many(number)
            target = _target(folder, member.name)
            source = archive.extractfile(member) if member.isreg() and target is not None else None
            if source is not None and target is not None:
                room = _copy(source, target, room)


def _target(folder: Path, name: str) -> Path | None:
    """Return the destination of a member; None if its path is absolute or leaves the folder."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or ":" in parts.parts[0]:
        return None
    return folder.joinpath(*parts.parts)


def _copy(source: IO[bytes], target: Path, room: int) -> int:
    """Copy a member within the remaining size limit; do not trust the size that the archive states."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        while data := source.read(BLOCK):
            room -= len(data)
            if room < 0:
                raise Unreadable("archive is larger than the cap when unpacked")
            out.write(data)
    return room


def _refuse_many(count: int) -> None:
    if count > MOST_MEMBERS:
        raise Unreadable(f"archive holds more than {MOST_MEMBERS:,} members")
