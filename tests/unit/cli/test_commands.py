"""Every command of `arise`: a real example in its help, `--json`, no colour where none is wanted, completion."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from arise.cli.app import app
from arise.config.file import load_config
from arise.run.store import RunStore
from arise.text.escape import visible
from tests.stored_runs import write_run
from tests.task_folders import DIFF_TEST, write_task

ROOT = Path(__file__).parents[3]
HOSTILE = "\x1b[31mred\x1b[0m \u202ertl \u200bzero \x07bell \r\nnext \ud800 \x9b2J"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, by its words."""
    if hasattr(group, "commands"):
        for name, command in group.commands.items():
            yield from commands(command, (*path, name))
    else:
        yield path, group


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stored run."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    write_run(folder, 6)
    with closing(RunStore.open(folder)) as store:
        store.save_vitals(0, {"seconds.rollouts": 1.0})
    return folder


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_a_real_example_and_says_what_it_does(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    found = re.fullmatch(r"Example: arise (.+)", command.epilog or "")
    assert found, "an epilog 'Example: arise ...'"
    words = shlex.split(found[1])
    assert tuple(words[: len(path)]) == path
    command.make_context("arise", words[len(path) :], resilient_parsing=False).close()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the examples see it: shipped configurations, one task, two runs as long as that of embedded.toml."""
    folder = tmp_path_factory.mktemp("example")
    (folder / "configs").symlink_to(ROOT / "configs")
    for name in ("first", "second"):
        write_run(folder / "runs" / name, 60)
    write_task(folder / "corpus" / "answer")
    other = write_task(folder / "held-out" / "other", test=f"# another task\n{DIFF_TEST}")
    (other / "instruction.md").write_text("Sort the names in people.csv by age and put them into sorted.csv.\n")
    return folder


SERVED_OR_LONG = {"train", "resume", "eval", "guidance", "retention", "compare run", "compare report", "view",
                  "figures", "tables", "models pull", "judge check", "judge rejudge", "tasks tag", "skills test",
                  "chat", "runs rm", "serve", "endpoint", "harness install",
                  "engines install", "engines serve"}  # fmt: skip
"""Examples that take minutes, install, serve until they are stopped, delete, or need a key: their words are checked."""


@pytest.mark.parametrize("path", [path for path in COMMANDS if " ".join(path) not in SERVED_OR_LONG], ids=" ".join)
def test_an_example_works_as_printed(path: tuple[str, ...], first: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(first)
    words = shlex.split((COMMANDS[path].epilog or "").removeprefix("Example: arise "))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_what_an_example_names_is_there(path: tuple[str, ...], first: Path) -> None:
    """Configurations load, a run has the iteration, and no key is sent to a server that it is not for."""
    words = shlex.split(COMMANDS[path].epilog or "")
    configs = [first / word for word in words if word.startswith("configs/")]
    config = load_config(configs) if configs else load_config(ROOT / "configs" / "embedded.toml")
    kept = config.train.iterations + 1 - config.storage.keep_checkpoints
    if path == ("eval",):
        assert kept <= int(words[words.index("--at") + 1]) <= config.train.iterations
    assert ("--base-url" in words) <= ("--api-key-env" in words)
    assert ("--add-budget" in words) <= (config.budget.max_usd > 0)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_can_answer_in_json(path: tuple[str, ...]) -> None:
    assert "--json" in {name for parameter in COMMANDS[path].params for name in parameter.opts}


def call(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "arise.cli.main", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"COLUMNS": "100"} | environment,
    )


@pytest.mark.parametrize(
    "words",
    ["verify {run}", "runs {runs}", "pool ls {run} --all", "pool show {run} r001", "pool diff {run} r001",
     "pool export {run}", "sampler why {run} 3", "sampler why {run} 3:1", "export {run} --format jsonl", "doctor",
     "models list"],
)  # fmt: skip
def test_commands_that_look_at_a_run(run: Path, words: str) -> None:
    arguments = words.format(run=run, runs=run.parent).split()
    plain = CliRunner().invoke(app, arguments)
    assert plain.exit_code == 0, plain.output
    assert plain.output.strip()
    assert "\x1b" not in plain.output
    answered = CliRunner().invoke(app, [*arguments, "--json"])
    assert answered.exit_code == 0, answered.output
    json.loads(answered.output)


def test_a_damaged_run_fails_its_verification(run: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    (copy / "trajectories" / "k00002.zst").write_bytes(b"torn")
    found = CliRunner().invoke(app, ["verify", str(copy)])
    assert found.exit_code == 5
    assert "FAIL  trajectories" in found.output
    assert "trajectories/k00002.zst was changed or is torn" in found.output
    answered = json.loads(CliRunner().invoke(app, ["verify", str(copy), "--json"]).output)
    assert answered["passed"] is False


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("verify nowhere", 5, "nowhere holds no run"),
        ("export nowhere --format jsonl", 5, "nowhere holds no run"),
        ("pool ls nowhere", 5, "nowhere holds no run"),
        ("pool show {run} r999", 2, "no rubric 'r999'"),
        ("sampler why {run} 99", 2, "there is no iteration 99"),
        ("sampler why {run} 1:9", 2, "it has slots 1 to 2"),
        ("sampler why {run} first", 2, "write 12, or 12:3"),
    ],
)
def test_errors_are_one_message_with_an_exit_code(run: Path, words: str, code: int, said: str) -> None:
    found = CliRunner().invoke(app, words.format(run=run).split())
    assert found.exit_code == code
    assert said in found.output
    assert "Traceback" not in found.output


EVERY_HELP = """
import sys
from typer.testing import CliRunner
from arise.cli.app import app
for line in sys.stdin:
    print(CliRunner().invoke(app, [*line.split(), "--help"], color=True).output)
"""


@pytest.mark.parametrize("unwanted", [True, False])
def test_no_colour_when_colour_is_off(unwanted: bool) -> None:
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"} | ({"NO_COLOR": "1"} if unwanted else {})
    done = subprocess.run(
        [sys.executable, "-c", EVERY_HELP],
        input="\n".join(map(" ".join, COMMANDS)),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={key: value for key, value in os.environ.items() if key != "NO_COLOR"} | colours,
    )
    assert done.stdout.count("Usage:") == len(COMMANDS)
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", done.stdout)) != unwanted


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_shell_can_complete_commands(path: tuple[str, ...]) -> None:
    asked = {"_ARISE_COMPLETE": "complete_bash", "COMP_CWORD": str(len(path))}
    asked["COMP_WORDS"] = " ".join(["arise", *path])[:-1]
    answer = CliRunner().invoke(app, prog_name="arise", env=asked)
    assert path[-1] in answer.output.split()


def test_text_from_a_run_cannot_move_the_cursor() -> None:
    shown = visible(HOSTILE)
    assert not set(shown) & set("\x1b\x07\r\x9b\u202e\u200b\ud800")
    assert "\\x1b[31mred" in shown
    assert visible("plain text\n\tßé漢🙂") == "plain text\n\tßé漢🙂"
