import pytest

from arise.method.schedule import learning_rate


def test_without_warm_up_the_rate_is_constant() -> None:
    assert [learning_rate(update, 0.5, 0) for update in (0, 1, 9)] == [0.5, 0.5, 0.5]
    assert learning_rate(0, 0.5, 1) == 0.5


def test_negative_update() -> None:
    with pytest.raises(ValueError, match=r"^update = -1 must not be negative$"):
        learning_rate(-1, 1.0, 4)
