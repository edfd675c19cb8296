"""Trajectories of an iteration in one file; each can be read alone, and its turns page by page.

A rollout is a head (everything except turns and tokens, with the offsets of the rest), pages of turns, and the token
rows: each in its own zstandard frame.
"""

import json
import os
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from arise.errors import AriseError, Exit
from arise.types import Group, Rollout, Tokens, Turn
from arise.types.codec import from_json, to_json

PAGE_TURNS, PAGE_CHARS = 40, 200_000
_own = threading.local()
_HEAD_LENGTH = struct.Struct("<I")


class ChunkPlace(NamedTuple):
    """The location of a trajectory — `ChunkPlace("k00012.zst", 4096, 812)`."""

    chunk: str
    start: int
    length: int


class Mask(NamedTuple):
    """The trained tokens of a row, as (start, length) spans — `Mask(120, ((40, 12), (90, 30)))`."""

    tokens: int
    spans: tuple[tuple[int, int], ...]


class _Page(NamedTuple):
    first_turn: int
    turns: int
    start: int
    length: int


def pack(value: Any) -> bytes:
    """Encode a value as compressed JSON."""
    return compress(json.dumps(to_json(value)))


def unpack_group(content: bytes) -> Group:
    """Decode a group that `pack` wrote."""
    return from_json(Group, decompress(content))


def pack_rollout(rollout: Rollout) -> bytes:
    """Split a rollout into head, pages of turns and token rows."""
    trajectory = rollout.trajectory
    pages, body, start = [], [], 0
    for first_turn, texts in _pages(trajectory.turns):
        frame = compress(f"[{','.join(texts)}]")
        pages.append(_Page(first_turn, len(texts), start, len(frame)))
        body.append(frame)
        start += len(frame)
    rows = pack(trajectory.rows)
    head = pack(
        {
            "rollout": replace(rollout, trajectory=replace(trajectory, turns=(), rows=())),
            "turns": len(trajectory.turns),
            "pages": pages,
            "masks": [_mask(row) for row in trajectory.rows],
            "rows": [start, len(rows)],
        }
    )
    return b"".join([_HEAD_LENGTH.pack(len(head)), head, *body, rows])


class StoredRollout:
    """One rollout in its chunk; opening it reads only the head."""

    def __init__(self, folder: Path, place: ChunkPlace) -> None:
        self._path, self._end = folder / Path(place.chunk).name, place.start + place.length
        length = int.from_bytes(self._read(place.start, _HEAD_LENGTH.size), "little")
        head = self._open(place.start + _HEAD_LENGTH.size, length)
        self._body = place.start + _HEAD_LENGTH.size + length
        self.rollout = from_json(Rollout, head["rollout"])
        self.turn_count: int = head["turns"]
        self.masks = [from_json(Mask, mask) for mask in head["masks"]]
        self._pages = [_Page(*page) for page in head["pages"]]
        self._rows: tuple[int, int] = tuple(head["rows"])

    def turns(self, first: int = 0, count: int | None = None) -> list[Turn]:
        """Return `count` turns from turn `first` on, or all of them."""
        end = self.turn_count if count is None else min(first + count, self.turn_count)
        found: list[Turn] = []
        for page in self._pages:
            if page.first_turn + page.turns > first and page.first_turn < end:
                stored = self._open(self._body + page.start, page.length)
                wanted = stored[max(0, first - page.first_turn) : end - page.first_turn]
                found += [from_json(Turn, turn) for turn in wanted]
        return found

    def whole(self) -> Rollout:
        """Return the rollout as it was written."""
        start, length = self._rows
        rows = tuple(from_json(Tokens, row) for row in self._open(self._body + start, length))
        return replace(self.rollout, trajectory=replace(self.rollout.trajectory, turns=tuple(self.turns()), rows=rows))

    def _open(self, start: int, length: int) -> Any:
        try:
            return decompress(self._read(start, length))
        except ValueError as error:
            raise AriseError(
                "storage",
                Exit.STORAGE,
                f"{self._path}, byte {start}: {error}",
                "this trajectory cannot be opened; the others can",
                f"what is damaged: arise verify {self._path.parents[1]}",
            ) from None

    def _read(self, start: int, length: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(min(length, self._end - start))


def write_chunk(folder: Path, name: str, rollouts: Iterable[Rollout]) -> list[ChunkPlace]:
    """Write rollouts durably into one file; return the place of each."""
    folder.mkdir(parents=True, exist_ok=True)
    places, start = [], 0
    draft = folder / f".{name}.draft"
    with draft.open("wb") as file:
        for rollout in rollouts:
            content = pack_rollout(rollout)
            file.write(content)
            places.append(ChunkPlace(name, start, len(content)))
            start += len(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / name)
    return places


def read_rollout(folder: Path, place: ChunkPlace) -> Rollout:
    """Read one whole rollout from its chunk."""
    return StoredRollout(folder, place).whole()


def _pages(turns: Sequence[Turn]) -> Iterator[tuple[int, list[str]]]:
    """Yield turns as JSON in pages with limited turns and text."""
    page: list[str] = []
    size = 0
    for number, turn in enumerate(turns):
        text = json.dumps(to_json(turn))
        if page and (len(page) == PAGE_TURNS or size + len(text) > PAGE_CHARS):
            yield number - len(page), page
            page, size = [], 0
        page.append(text)
        size += len(text)
    if page:
        yield len(turns) - len(page), page


def _mask(row: Tokens) -> Mask:
    edges = np.flatnonzero(np.diff(row.generated_U, prepend=False, append=False))
    spans = tuple((int(start), int(end - start)) for start, end in edges.reshape(-1, 2))
    return Mask(len(row), spans)


def compress(text: str) -> bytes:
    """Compress text into one frame with a checksum; preserve lone surrogates."""
    if not hasattr(_own, "compressor"):  # creating one is as slow as using it, and threads must not share it
        _own.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    content: bytes = _own.compressor.compress(text.encode("utf-8", "surrogatepass"))
    return content


def decompress(content: bytes) -> Any:
    """Decompress JSON; raise ValueError if the content was changed."""
    try:
        return json.loads(zstandard.decompress(content).decode("utf-8", "surrogatepass"))
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged: {error}") from None
