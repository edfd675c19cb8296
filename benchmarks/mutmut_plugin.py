"""A pytest plugin for mutmut 3.8, which asks items for an attribute that pytest 9.2 no longer has."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test the private node id back."""
    for item in items:
        item.__dict__.setdefault("_nodeid", item.nodeid)
