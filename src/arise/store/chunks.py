"""Trajectories of an iteration in one file: each compressed by itself, so that any of them opens without the others."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from arise.codec import from_json, to_json
from arise.types import Group, Rollout


class Place(NamedTuple):
    """Where a trajectory lies — `Place("k00012.zst", 4096, 812)`."""

    chunk: str
    start: int
    length: int


def pack(value: Any) -> bytes:
    """A noun as compressed JSON."""
    return zstandard.compress(json.dumps(to_json(value)).encode("utf-8", "surrogatepass"), 3)


def unpack_group(content: bytes) -> Group:
    """The group that `pack` wrote."""
    return from_json(Group, json.loads(zstandard.decompress(content).decode("utf-8", "surrogatepass")))


def write_chunk(folder: Path, name: str, rollouts: Iterable[Rollout]) -> list[Place]:
    """Write rollouts into one file, durable when this returns; gives the place of each."""
    folder.mkdir(parents=True, exist_ok=True)
    places, start = [], 0
    draft = folder / f".{name}.draft"
    with draft.open("wb") as file:
        for rollout in rollouts:
            content = pack(rollout)
            file.write(content)
            places.append(Place(name, start, len(content)))
            start += len(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / name)
    return places


def read_rollout(folder: Path, place: Place) -> Rollout:
    """One rollout out of its chunk."""
    with (folder / place.chunk).open("rb") as file:
        file.seek(place.start)
        content = file.read(place.length)
    return from_json(Rollout, json.loads(zstandard.decompress(content).decode("utf-8", "surrogatepass")))
