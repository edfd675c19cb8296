"""Parts named by import path: what is accepted, and one clear message for each way in which a part can be wrong."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.compose import registry
from arise.compose.imports import EXTENSION_POINTS, _members, check_imports, imported
from arise.compose.judges import JUDGES, REFLECTORS
from arise.compose.policies import ENGINES
from arise.compose.sandboxes import SANDBOXES
from arise.config import Config, Imported
from arise.config.agent import HarnessConfig
from arise.errors import AriseError, Exit
from tests.builders import a_task

MODULE = """
import json

class Sampler:
    def __init__(self, tasks, random, greed=1.0):
        self.tasks, self.random, self.greed = tasks, random, greed
    def draw(self, count, version, unavailable=()): return []
    def observe(self, groups, pool, version): pass
    def keep_only(self, pool): pass
    def to_dict(self): return {"greed": self.greed}
    def restore(self, saved): self.greed = saved["greed"]

class NoRestore(Sampler):
    restore = None

class NarrowDraw(Sampler):
    def draw(self, count): return []

class Raising(Sampler):
    def __init__(self, tasks, random): raise ValueError("no tasks for me")

class Unsavable(Sampler):
    def to_dict(self): return {"tasks": {1, 2}}

class Judge:
    def __init__(self, seed): self.identity = "mine/1"
    async def judge(self, task, rollout, pool): ...

class Nameless(Judge):
    def __init__(self, seed): pass

class SyncJudge(Judge):
    def judge(self, task, rollout, pool): ...

class Credit:
    def __call__(self, group, pool): return None

class NotCallable:
    pass

class Tracker:
    def __init__(self, folder, settings): pass
    def log(self, iteration, values): pass
    def close(self): pass

def make_credit(): return lambda group, pool: None
def no_credit(): return 3
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with modules of a user, on the path of this process for one test."""
    for name, text in {"own_parts": MODULE, "broken_import": "import nothing_of_that_name", "raises": "1 / 0"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("own_parts", "broken_import", "raises"):
        sys.modules.pop(name, None)


def config(section: str, path: str, **options: Any) -> Config:
    return Config.model_validate({section: {"kind": "import", "path": path, "options": options}})


def made_sampler(path: str, **options: Any) -> Any:
    return registry.make_sampler(config("sampler", path, **options), [a_task("a")])


def test_a_sampler_is_given_tasks_random_numbers_and_its_options() -> None:
    sampler = made_sampler("own_parts:Sampler", greed=2.5)
    assert ([task.id for task in sampler.tasks], sampler.greed) == (["a"], 2.5)
    assert sampler.random.random() == np.random.default_rng([0, 1]).random()


def test_a_factory_function_will_do() -> None:
    assert registry.make_credit(config("credit", "own_parts:make_credit"))(None, None) is None  # type: ignore[arg-type]
    assert registry.make_credit(config("credit", "own_parts:Credit"))(None, None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("section", "path", "options", "problem", "remedy"),
    [
        ("sampler", "nowhere.parts:Sampler", {}, "no module named 'nowhere'", "PYTHONPATH"),
        ("sampler", "own_parts.more:Sampler", {}, "no module named 'own_parts.more'", "sampler.path"),
        ("sampler", "broken_import:Sampler", {}, "ModuleNotFoundError: No module named 'nothing_of", "install what"),
        ("sampler", "raises:Sampler", {}, "raised ZeroDivisionError", "python -c 'import raises'"),
        ("sampler", "own_parts:Sampeler", {}, "own_parts has no attribute 'Sampeler'", "sampler.path"),
        ("sampler", "own_parts:NUMBER", {}, "not a class or a function", "name a class"),
        ("sampler", "own_parts:Sampler", {"gred": 1.0}, "wrong signature: got an unexpected", "tasks, random, gred"),
        (
            "sampler",
            "own_parts:Sampler",
            {"tasks": []},
            "options.tasks is set by arise",
            "remove sampler.options.tasks",
        ),
        ("sampler", "own_parts:NoRestore", {}, "no method restore(saved)", "Extend ARISE"),
        ("sampler", "own_parts:NarrowDraw", {}, "draw must accept (count, version, unavailable)", "Extend ARISE"),
        ("judge", "own_parts:SyncJudge", {}, "judge must be defined with `async def`", "Extend ARISE"),
        ("credit", "own_parts:NotCallable", {}, "no method __call__(group, pool)", "Extend ARISE"),
        ("agent", "own_parts:Sampler", {}, "wrong signature", "engine, limits, sampling"),
        ("reflector", "own_parts:Judge", {}, "no method propose(evidence, avoid, max_items, round_number)", "Extend"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(
    section: str, path: str, options: dict[str, Any], problem: str, remedy: str
) -> None:
    with pytest.raises(AriseError) as caught:
        check_imports(config(section, path, **options))
    assert caught.value.exit_code is Exit.CONFIG
    assert caught.value.what.startswith(f"{section}.path = {path!r}: ")
    assert problem in caught.value.what
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("own_parts:Raising", "its constructor raised ValueError: no tasks for me"),
        ("own_parts:Unsavable", "its state cannot be saved and restored: TypeError: Object of type set"),
    ],
)
def test_errors_of_the_constructor_are_reported(path: str, problem: str) -> None:
    check_imports(config("sampler", path))
    with pytest.raises(AriseError) as caught:
        made_sampler(path)
    assert problem in caught.value.what


def test_an_attribute_of_the_instance_is_required() -> None:
    judge = Imported(path="own_parts:Judge")
    assert imported("judge", judge, seed=0).identity == "mine/1"
    with pytest.raises(AriseError, match="no attribute 'identity'"):
        imported("judge", Imported(path="own_parts:Nameless"), seed=0)
    with pytest.raises(AriseError, match=r"no method __call__\(group, pool\)"):
        imported("credit", Imported(path="own_parts:no_credit"))


def test_a_module_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Path) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(parts)])
    monkeypatch.chdir(tmp_path)
    assert check_imports(config("sampler", "own_parts:Sampler"))


def test_a_custom_tracker_works_next_to_named_ones() -> None:
    use = ["tensorboard", {"path": "own_parts:Tracker"}]
    assert [part.path for part in check_imports(Config.model_validate({"trackers": {"use": use}}))] == [
        "own_parts:Tracker"
    ]
    with pytest.raises(AriseError, match=r"trackers\.use\.path = 'own_parts:Judge'"):
        check_imports(Config.model_validate({"trackers": {"use": [{"path": "own_parts:Judge"}]}}))


@pytest.mark.parametrize("command", ["config", "doctor", "train"])
def test_every_command_that_takes_a_configuration_checks_it(tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.toml").write_text("[sampler]\nkind = 'import'\npath = 'own_parts:NoRestore'\n")
    words = [command, str(tmp_path / "mine.toml"), *([] if command == "config" else ["--run-dir", str(tmp_path / "r")])]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == (1 if command == "doctor" else Exit.CONFIG)
    assert "sampler.path = 'own_parts:NoRestore': it has no method restore(saved)" in done.output
    assert not (tmp_path / "r").exists()


TABLES: dict[str, Mapping[str, object]] = {
    "sampler": registry.SAMPLERS,
    "credit": registry.CREDITS,
    "guidance": registry.GUIDANCES,
    "agent": registry.AGENTS,
    "judge": JUDGES,
    "reflector": REFLECTORS,
    "policy": ENGINES,
    "sandbox": SANDBOXES,
}


@pytest.mark.parametrize("section", TABLES)
def test_every_kind_of_a_section_has_its_factory(section: str) -> None:
    """Harnesses are agents of one class, whatever their kind."""
    variants = [v for v in get_args(Config.model_fields[section].annotation) if not issubclass(v, HarnessConfig)]
    assert {variant.model_fields["kind"].default for variant in variants} == set(TABLES[section])
    assert ("import" in TABLES[section]) == (section in EXTENSION_POINTS)


def test_the_guide_lists_the_arguments_and_methods_of_every_extension_point() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "extend.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1].strip("[]"): line for line in page.splitlines() if line.startswith(("| `[", "| `--"))}
    assert set(rows) == set(EXTENSION_POINTS)
    for section, (port, arguments) in EXTENSION_POINTS.items():
        wanted = [*arguments, *(name for name, _ in _members(port)), port.__name__]
        assert [name for name in wanted if f"`{name}`" not in rows[section]] == []
