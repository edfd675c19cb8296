"""F25: 30 broken task directories, each named with what is wrong and what fixes it, and none with a traceback."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from arise.tasks import CorpusError, load_corpus, read_corpus, read_task
from arise.types import TaskSpec
from tests.task_folders import TASK_TOML, write_task


def text(name: str, content: str) -> Callable[[Path], object]:
    return lambda task: (task / name).write_text(content)


def toml(extra: str) -> Callable[[Path], object]:
    return lambda task: (task / "task.toml").write_text(f"{TASK_TOML.format(name=task.name)}{extra}\n")


def replaced(old: str, new: str) -> Callable[[Path], object]:
    return lambda task: (task / "task.toml").write_text(TASK_TOML.format(name=task.name).replace(old, new))


def linked(name: str, target: str) -> Callable[[Path], object]:
    def make(task: Path) -> None:
        (task / name).unlink(missing_ok=True)
        (task / name).symlink_to(target)

    return make


def removed(name: str) -> Callable[[Path], object]:
    return lambda task: (task / name).unlink()


def sized(name: str, size: int) -> Callable[[Path], object]:
    return lambda task: os.truncate(_touched(task / name), size)


def _touched(path: Path) -> Path:
    path.touch()
    return path


def benchflow(content: str) -> Callable[[Path], object]:
    def make(task: Path) -> None:
        (task / "task.toml").unlink()
        (task / "task.md").write_text(content)

    return make


def deep(task: Path) -> None:
    task.joinpath("environment", *["d"] * 70).mkdir(parents=True)


# How a sound task is broken, and words that the report must have.
BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no-task-file": (removed("task.toml"), "has no task.toml or task.md"),
    "bad-toml": (text("task.toml", "[task\nname ="), "is not TOML"),
    "toml-not-text": (lambda task: (task / "task.toml").write_bytes(b"\xff\xfe\x00"), "not UTF-8"),
    "toml-is-a-loop": (linked("task.toml", "task.toml"), "circle"),
    "no-instruction": (removed("instruction.md"), "instruction.md: is missing"),
    "empty-instruction": (text("instruction.md", " \n"), "has no instruction"),
    "nul-in-instruction": (text("instruction.md", "a\0b"), "NUL"),
    "huge-instruction": (sized("instruction.md", 2 * 1024 * 1024), "more than 1048576"),
    "no-verifier": (removed("tests/test.sh"), "test.sh: is missing"),
    "empty-verifier": (text("tests/test.sh", ""), "test.sh: is empty"),
    "verifier-outside": (linked("tests/test.sh", "/etc/hostname"), "link out of its folder"),
    "2-gb-file": (sized("environment/big", 2 * 1024**3), "has 2147483648 bytes"),
    "too-large-in-all": (
        lambda task: [sized(f"environment/{n}", 60 * 1024**2)(task) for n in range(3)],
        "in all",
    ),
    "cyclic-link": (linked("environment/loop", "loop"), "link in a circle"),
    "link-to-own-parent": (linked("environment/loop", "."), "link in a circle"),
    "absolute-escape": (linked("environment/x", "/etc/passwd"), "link out of its folder, to '/etc/passwd'"),
    "relative-escape": (linked("environment/x", "../tests/expected.txt"), "link out of its folder"),
    "pipe": (lambda task: os.mkfifo(task / "environment/pipe"), "neither a file, a folder nor a link"),
    "odd-name": (lambda task: (task / "environment/a\nb").touch(), "not printable"),
    "too-deep": (deep, "folders deep"),
    "zero-timeout": (replaced("timeout_sec = 60", "timeout_sec = 0"), "agent.timeout_sec: Input should be greater"),
    "nan-timeout": (replaced("timeout_sec = 20", "timeout_sec = nan"), "verifier.timeout_sec"),
    "text-timeout": (replaced("timeout_sec = 20", 'timeout_sec = "soon"'), "verifier.timeout_sec"),
    "future-schema": (benchflow("---\nschema_version: '2.0'\n---\nDo it."), "only schema 1.x"),
    "unknown-task-type": (replaced("data-cleaning-and", "data-cleening-and"), "unknown task type"),
    "types-not-a-list": (replaced('["data-cleaning-and-normalization"]', '"data"'), "not a list of task-type ids"),
    "step-without-folder": (toml('[[steps]]\nname = "one"'), "steps/one/instruction.md: is missing"),
    "step-with-a-path": (toml('[[steps]]\nname = "../one"'), "steps.0.name"),
    "windows": (toml('[environment]\nos = "windows"'), "environment.os"),
    "bad-memory": (toml('[environment]\nmemory = "lots"'), "memory must be a size"),
    "bad-variable": (toml('[verifier.env]\n"A B" = "x"'), "name of a variable"),
    "md-without-frontmatter": (benchflow("Do it."), "does not begin with YAML"),
    "md-template": (benchflow("---\ntask: {name: {{ name }}}\n---\nDo it."), "found unhashable key"),
    "md-bad-yaml": (benchflow("---\na: [1\n---\nDo it."), "is not YAML"),
    "md-not-a-mapping": (benchflow("---\n- 1\n---\nDo it."), "the file: Input should be"),
    "md-without-prompt": (benchflow("---\nschema_version: '1.3'\n---\n\n"), "has no instruction"),
    "md-judged-by-a-model": (benchflow("---\nverifier: {type: llm-judge}\n---\nDo it."), "verifier.type"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_task_is_named(name: str, tmp_path: Path) -> None:
    task = write_task(tmp_path / name)
    breaks, words = BROKEN[name]
    breaks(task)
    problems = read_task(task)
    assert not isinstance(problems, TaskSpec)
    assert words in "\n".join(map(str, problems))
    for problem in problems:
        assert problem.path.is_relative_to(task)
        assert problem.remedy


def test_all_of_a_corpus_are_reported_at_once(tmp_path: Path) -> None:
    assert len(BROKEN) >= 30
    for name, (breaks, _) in BROKEN.items():
        breaks(write_task(tmp_path / name))
    write_task(tmp_path / "sound")
    write_task(tmp_path / "twin", name="sound")
    with pytest.raises(CorpusError) as caught:
        load_corpus(tmp_path)
    named = {problem.path.relative_to(tmp_path).parts[0] for problem in caught.value.problems}
    assert named == {*BROKEN, "twin"}
    assert [found.task.id for found in read_corpus(tmp_path).tasks] == ["sound"]


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ("[", "is not JSON"),
        ("[]", "is not an object"),
        ('{"absent": []}', "names no usable task: 'absent'"),
        ('{"sound": "data"}', "not a list of task-type ids"),
        ('{"sound": ["unit-harmonisation"]}', "did you mean 'unit-harmonization'?"),
    ],
)
def test_broken_tags_are_named(tags: str, words: str, tmp_path: Path) -> None:
    write_task(tmp_path / "sound")
    (tmp_path / "tags.json").write_text(tags)
    (problem,) = read_corpus(tmp_path).problems
    assert words.lower() in str(problem).lower()


@pytest.mark.parametrize("kind", ["absent", "empty", "a file", "a link to a task"])
def test_a_folder_without_tasks_is_named(kind: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    if kind != "absent":
        corpus.touch() if kind == "a file" else corpus.mkdir()
    if kind == "a link to a task":
        (corpus / "link").symlink_to(write_task(tmp_path / "elsewhere"))
    assert len(read_corpus(corpus).problems) == 1
