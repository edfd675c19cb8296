"""The disk of an attempt is a copy of an empty one, and costs what is in it, not its size."""

from pathlib import Path

import pytest

from arise.sandbox.overlay import copy_sparse

GIB = 1 << 30


@pytest.mark.parametrize("parts", [{}, {0: b"begin"}, {5 * 4096: b"middle", 2 * GIB: b"far"}, {3 * GIB - 3: b"end"}])
def test_a_copy_is_equal_and_has_the_holes_of_the_original(parts: dict[int, bytes], tmp_path: Path) -> None:
    source, target = tmp_path / "disk", tmp_path / "copy"
    with source.open("wb") as file:
        file.truncate(3 * GIB)
        for at, data in parts.items():
            file.seek(at)
            file.write(data)
    copy_sparse(source, target)
    assert target.stat().st_size == 3 * GIB
    assert target.stat().st_blocks * 512 < 1 << 20
    with target.open("rb") as file:
        for at, data in parts.items():
            file.seek(at)
            assert file.read(len(data)) == data
