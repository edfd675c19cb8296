"""The public API: every name resolves lazily, the three lists of it agree, and importing it stays cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import arise

SOURCE = Path(arise.__file__)


def typed_imports() -> set[str]:
    """The names that type checkers see."""
    (block,) = [node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    return {alias.name for line in block.body if isinstance(line, ast.ImportFrom) for alias in line.names}


def test_every_public_name_resolves_and_is_seen_by_type_checkers() -> None:
    assert set(arise.__all__) == typed_imports() | {"__version__"}
    assert [name for name in arise.__all__ if getattr(arise, name, None) is None] == []
    assert set(arise.__all__) <= set(dir(arise))


def test_every_public_class_and_function_is_documented() -> None:
    bare = [name for name in arise.__all__ if callable(getattr(arise, name)) and not getattr(arise, name).__doc__]
    assert bare == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'arise' has no attribute 'Smapler'"):
        arise.Smapler  # noqa: B018


def test_all_names_together_import_no_torch() -> None:
    code = "import arise, sys; [getattr(arise, name) for name in arise.__all__]; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"]


def test_a_run_that_cannot_start_raises_and_leaves_nothing(tmp_path: Path) -> None:
    config = arise.Config.model_validate({"sampler": {"kind": "import", "path": "nowhere:Sampler"}})
    with pytest.raises(arise.AriseError, match="no module named 'nowhere'"):
        arise.start_run(config, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(arise.AriseError):
        arise.resume_run(tmp_path / "run")
