"""The shape of the code, checked: sizes, names, purity, import speed and the direction of imports."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import (
    BENCHMARKS,
    ROOT,
    SOURCE,
    SOURCES,
    TESTS,
    imported,
    nodes,
    offenders,
    text,
    under,
)

METHOD = sorted((SOURCE / "method").glob("*.py"))
EVERYTHING = [*SOURCES, *TESTS, *BENCHMARKS]

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


def test_modules_are_short() -> None:
    assert offenders(EVERYTHING, lambda path: len(text(path).splitlines()) > MODULE_LINES) == {}


def long_functions(path: Path) -> list[str]:
    functions = [node for node in nodes(path) if isinstance(node, Function)]
    return [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES]


def test_functions_are_short() -> None:
    assert offenders(EVERYTHING, long_functions) == {}


def undescribed(path: Path) -> bool:
    module = nodes(path)[0]
    assert isinstance(module, ast.Module)
    return not 1 <= len((ast.get_docstring(module) or "").splitlines()) <= 5


def test_modules_say_what_they_own_in_at_most_five_lines() -> None:
    assert offenders(filter(text, SOURCES), undescribed) == {}


def test_no_vague_file_names() -> None:
    named = [path for path in EVERYTHING if VAGUE & set(path.stem.split("_"))]
    assert named == []


def imports_of(*packages: str) -> Callable[[Path], list[str]]:
    """A finder of the imports that lie under one of `packages`."""
    return lambda path: [module for module in imported(path) if any(under(module, package) for package in packages)]


def test_no_mocks() -> None:
    assert offenders(EVERYTHING, imports_of("unittest", "mock")) == {}


def test_the_method_imports_only_what_is_pure() -> None:
    allowed = imports_of(*METHOD_MAY_IMPORT)
    assert offenders(METHOD, lambda path: set(imported(path)) - set(allowed(path))) == {}


def test_the_method_takes_its_randomness_as_an_argument() -> None:
    impure = re.compile(r"default_rng|np\.random\.(?!Generator\b)|\b(?:print|open|input)\(")
    assert offenders(METHOD, lambda path: impure.findall(text(path))) == {}


def test_torch_stays_in_the_engines() -> None:
    outside = [path for path in SOURCES if "engines" not in path.parts]
    assert offenders(outside, imports_of("torch", "transformers", "peft")) == {}


def defined_names(path: Path) -> Iterator[str]:
    """Every name that a file itself gives: functions, classes, arguments, variables, attributes."""
    for node in nodes(path):
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


def stepped(path: Path) -> set[str]:
    """The names in a file that hold the word "step" and are not those of others."""
    named = {name for name in defined_names(path) if {"step", "steps"} & {word.lower() for word in words(name)}}
    return named - STEPS_OF_OTHERS


def test_nothing_is_called_a_step() -> None:
    """The paper's steps are iterations, turns, tokens or updates here: one word for four things misleads."""
    assert offenders(SOURCES, stepped) == {}


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
    assert len([path for path in SOURCES if path.parent == SOURCE]) <= ROOT_MODULES


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
    drawn = set(drawn_paths())
    assert sorted(name for name in drawn if not (SOURCE / name).exists()) == []
    expected = {f"method/{path.name}" for path in METHOD}
    expected |= {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    expected |= {path.name for path in SOURCE.glob("*.py")}
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


def test_a_noun_of_the_bottom_layer_names_one_class() -> None:
    homes: dict[str, set[Path]] = {}
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(path)
    bottom = [SOURCE / "types", SOURCE / "config", SOURCE / "ports.py", SOURCE / "state.py"]
    shared = {
        name
        for name, paths in homes.items()
        if len(paths) > 1 and any(path == home or home in path.parents for path in paths for home in bottom)
    }
    assert shared == set()
