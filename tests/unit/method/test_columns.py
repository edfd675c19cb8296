import pytest

from arise.method.columns import Columns


def test_a_rubric_keeps_its_column_and_freed_ones_are_reused_lowest_first() -> None:
    columns = Columns()
    assert columns.keep_only(["a", "b", "c", "d"]) == []
    assert columns.of(["d", "a"]) == [3, 0]
    assert columns.keep_only(["b", "e"]) == [0, 2, 3]
    assert columns.of(["b", "e"]) == [1, 0]
    assert columns.width == 4
    assert columns.keep_only(["b", "e", "f", "g", "h"]) == []
    assert columns.of(["f", "g", "h"]) == [2, 3, 4]
    assert columns.width == 5
    assert columns.ids == ("b", "e", "f", "g", "h")


def test_membership() -> None:
    columns = Columns()
    columns.keep_only(["a"])
    assert "a" in columns
    assert "b" not in columns


def test_unknown_rubric() -> None:
    columns = Columns()
    with pytest.raises(ValueError, match=r"^rubric 'z' is not active \(active: none\)$"):
        columns.of(["z"])
    columns.keep_only(["a", "b"])
    with pytest.raises(ValueError, match=r"^rubric 'z' is not active \(active: a, b\)$"):
        columns.of(["a", "z"])
