"""A folder in memory for tests that wait for the disk hundreds of times; what they prove does not depend on it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, in memory where the machine has such a place."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path_factory.mktemp("quick")
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="arise-test-") as folder:
        yield Path(folder)
