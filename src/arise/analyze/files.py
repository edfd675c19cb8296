"""Read untrusted JSON, JSON Lines and text files; detect Git LFS pointers and truncated lines."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

HEAD = 65_536
"""Bytes of a file that format detection reads."""
_POINTER = b"version https://git-lfs.github.com/spec/"


class Unreadable(ValueError):  # noqa: N818 - data in place of a value, too
    """A file or line that cannot be used; the message is the reason counted in the coverage line."""


@lru_cache(maxsize=64)
def head(path: Path) -> bytes:
    """Return the beginning of a file, decompressed for `.zst`; empty if it cannot be read."""
    try:
        if path.suffix == ".zst":
            import zstandard

            with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as stream:
                return bytes(stream.read(HEAD))
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except (OSError, ValueError, ImportError):
        return b""


def is_pointer(path: Path) -> bool:
    """Return whether a file is a Git LFS pointer."""
    return head(path).startswith(_POINTER)


def load(path: Path) -> Any:
    """Read the JSON document in a file."""
    if is_pointer(path):
        raise Unreadable("Git LFS pointer: the content was not downloaded (git lfs pull)")
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig", "replace"))
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Unreadable("invalid JSON") from None


def load_optional(path: Path) -> Any:
    """Read the JSON document in a side file; None if it is missing or invalid."""
    try:
        return load(path) if path.is_file() else None
    except Unreadable:
        return None


def text_of(path: Path, longest: int = 200_000) -> str | None:
    """Read a side file, only its beginning and end if it is long; None if it is missing or a pointer."""
    try:
        if not path.is_file() or is_pointer(path):
            return None
        size = path.stat().st_size
        with path.open("rb") as stream:
            if size <= longest:
                return stream.read().decode("utf-8", "replace")
            first = stream.read(longest // 2)
            stream.seek(size - longest // 2)
            return (first + b"\n" + stream.read()).decode("utf-8", "replace")
    except OSError:
        return None


def lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield number and value of every JSON line; yield an `Unreadable` for a line that cannot be parsed."""
    if is_pointer(path):
        yield 0, Unreadable("Git LFS pointer: the content was not downloaded (git lfs pull)")
        return
    try:
        with _stream(path) as stream:
            for number, raw in enumerate(stream, start=1):
                if raw.strip():
                    yield number, _value(raw)
    except (OSError, ValueError, EOFError) as error:
        yield 0, Unreadable(f"cannot be read: {error}")


def _stream(path: Path) -> Any:
    if path.suffix == ".zst":
        import io

        import zstandard

        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True))
    return path.open("rb")


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return Unreadable("invalid JSON" if raw.endswith(b"\n") else "truncated line")


def opening_values(path: Path, count: int = 8) -> list[Any]:
    """Return the JSON values of the first lines that are complete within the head of a file."""
    found = []
    for raw in head(path).splitlines()[:count]:
        try:
            found.append(json.loads(raw.decode("utf-8-sig", "replace")))
        except (ValueError, RecursionError):
            continue
    return found


def fields_of(path: Path, most: int = 12) -> list[str]:
    """Return the names of the top fields of a JSON object, or of the first object in a list or in lines."""
    value = next(iter(opening_values(path, 1)), None)
    if value is None and path.suffix == ".json" and path.stat().st_size <= 4_000_000:
        value = load_optional(path)
    value = value[0] if isinstance(value, list) and value else value
    return [str(name)[:40] for name in list(as_mapping(value))[:most]]


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mentions(path: Path, *words: str) -> bool:
    """Return whether the head of a file contains all words: a cheap test before parsing."""
    start = head(path)
    return all(word.encode() in start for word in words)
