"""The seal of rows: a digest that does not depend on their order, and that rows can be taken into and out of."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

Row = tuple[str, tuple[Any, ...]]
"""The table's name and the values of all its columns."""
EMPTY = f"{0:032x}"


def changed_seal(seal: str, added: Iterable[Row], removed: Iterable[Row] = ()) -> str:
    """The seal after rows came and went; a row that is not what was sealed leaves a seal that fits nothing."""
    return as_seal(int(seal, 16) + sum(map(row_digest, added)) - sum(map(row_digest, removed)))


def as_seal(digests: int) -> str:
    """The seal of rows whose digests have this sum."""
    return f"{digests % 2**128:032x}"


def row_digest(row: Row) -> int:
    """A row's share of a seal."""
    table, columns = row
    values = [value.hex() if isinstance(value, bytes) else value for value in columns]
    return int.from_bytes(blake2b(json.dumps([table, values]).encode(), digest_size=16).digest(), "big")
