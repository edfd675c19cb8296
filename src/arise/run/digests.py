"""Order-independent digests of rows (seals), to which rows can be added and from which they can be removed."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

Row = tuple[str, tuple[Any, ...]]
"""A table's name and the values of all columns of a row."""
EMPTY = f"{0:032x}"


def changed_seal(seal: str, added: Iterable[Row], removed: Iterable[Row] = ()) -> str:
    """Return the seal after rows were added and removed; removing a changed row leaves an invalid seal."""
    return as_seal(int(seal, 16) + sum(map(row_digest, added)) - sum(map(row_digest, removed)))


def as_seal(digests: int) -> str:
    """Return the seal for the sum of row digests."""
    return f"{digests % 2**128:032x}"


def row_digest(row: Row) -> int:
    """Return the digest of one row."""
    table, columns = row
    values = [value.hex() if isinstance(value, bytes) else value for value in columns]
    return int.from_bytes(blake2b(json.dumps([table, values]).encode(), digest_size=16).digest(), "big")
