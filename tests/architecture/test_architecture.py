"""The shape of the code, checked: sizes, names, purity, import speed and the direction of imports."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "arise").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
METHOD = sorted((ROOT / "src" / "arise" / "method").glob("*.py"))

MODULE_LINES, FUNCTION_LINES, ROOT_MODULES = 300, 50, 8
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "handler", "misc"}
PURE = {
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "itertools",
    "math",
    "typing",
}
METHOD_MAY_IMPORT = PURE | {
    "numpy",
    "arise.types",
    "arise.config",
    "arise.config.pool",
    "arise.config.sampler",
    "arise.method",
}
STEPS_OF_OTHERS = {"train_step", "StepStats", "step", "steps", "StepSpec", "StepSection", "multi_step_reward_strategy"}
STEPS_OF_OTHERS |= {"optimizer_step"}
"""The engine port follows the engines behind it; `optimizer_step` is AReaL's, `steps` are those of Harbor tasks."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def under(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("path", [*SOURCES, *TESTS, *BENCHMARKS], ids=shown)
def test_modules_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES, node.name


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_modules_say_what_they_own_in_at_most_five_lines(path: Path) -> None:
    if not path.read_text(encoding="utf-8"):
        return
    described = ast.get_docstring(tree(path))
    assert described
    assert len(described.splitlines()) <= 5


def test_no_vague_file_names() -> None:
    named = [path for path in [*SOURCES, *TESTS, *BENCHMARKS] if VAGUE & set(path.stem.split("_"))]
    assert named == []


@pytest.mark.parametrize("path", [*SOURCES, *TESTS, *BENCHMARKS], ids=shown)
def test_no_mocks(path: Path) -> None:
    assert not [module for module in imported(path) if under(module, "unittest") or under(module, "mock")]


@pytest.mark.parametrize("path", METHOD, ids=shown)
def test_the_method_imports_only_what_is_pure(path: Path) -> None:
    impure = [m for m in imported(path) if not any(under(m, allowed) for allowed in METHOD_MAY_IMPORT)]
    assert impure == []


@pytest.mark.parametrize("path", METHOD, ids=shown)
def test_the_method_takes_its_randomness_as_an_argument(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert "default_rng" not in source
    assert re.search(r"np\.random\.(?!Generator\b)", source) is None
    assert not re.search(r"\b(print|open|input)\(", source)


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_torch_stays_in_the_engines(path: Path) -> None:
    if "engines" not in path.parts:
        assert not [m for m in imported(path) if under(m, "torch") or under(m, "transformers") or under(m, "peft")]


def defined_names(path: Path) -> Iterator[str]:
    """Every name that a file itself gives: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(tree(path)):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def words(name: str) -> list[str]:
    return re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)


@pytest.mark.parametrize("path", SOURCES, ids=shown)
def test_nothing_is_called_a_step(path: Path) -> None:
    """The paper's steps are iterations, turns, tokens or updates here: one word for four things misleads."""
    stepped = {name for name in defined_names(path) if {"step", "steps"} & {word.lower() for word in words(name)}}
    assert stepped <= STEPS_OF_OTHERS


HELP = "from typer.testing import CliRunner; from arise.cli.app import app; CliRunner().invoke(app, ['--help'])"


@pytest.mark.parametrize("code", ["import arise", HELP], ids=["import", "help"])
def test_starting_imports_nothing_heavy(code: str) -> None:
    report = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "arise" in loaded
    assert not loaded & {"torch", "transformers", "peft", "scipy", "numpy", "pydantic"}


@pytest.mark.slow  # `make test` runs lint-imports itself
def test_imports_point_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_root_holds_at_most_eight_modules() -> None:
    assert len([path for path in SOURCES if path.parent == ROOT / "src" / "arise"]) <= ROOT_MODULES


def drawn_paths() -> Iterator[str]:
    """Yield every path below src/arise in the tree of ARCHITECTURE.md; rows of a folder have two more spaces."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = page.partition("```\nsrc/arise/\n")[2].partition("\ntests/\n")[0]
    parent = ""
    for row in block.splitlines():
        name = row.split()[0]
        deeper = row.startswith("    ")
        yield f"{parent}{name}" if deeper else name
        parent = parent if deeper else name


def test_the_tree_in_the_architecture_page_is_the_tree() -> None:
    top = ROOT / "src" / "arise"
    drawn = set(drawn_paths())
    assert sorted(name for name in drawn if not (top / name).exists()) == []
    expected = {f"method/{path.name}" for path in METHOD}
    expected |= {f"{path.parent.name}/" for path in top.glob("*/__init__.py")}
    expected |= {path.name for path in top.glob("*.py")}
    assert sorted(name for name in expected - drawn if "__" not in name) == []


def test_the_layers_in_the_architecture_page_are_those_of_the_contract() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    shown_layers = [
        set(re.findall(r"`(\w+)`", row.split("|")[2])) for row in page.splitlines() if re.match(r"\| \d ", row)
    ]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert shown_layers == [set(re.findall(r"arise\.(?!__)(\w+)", layer)) for layer in layers]
