"""The files that rules are checked on: each is read and parsed once."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "arise"
SOURCES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a module, the module itself first."""
    return list(ast.walk(ast.parse(text(path))))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def under(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def offenders(paths: Iterable[Path], broken: Callable[[Path], object]) -> dict[str, object]:
    """Return what `broken` finds wrong in each file, by path; files without a finding are left out."""
    found = {str(path.relative_to(ROOT)): broken(path) for path in paths}
    return {path: finding for path, finding in found.items() if finding}
