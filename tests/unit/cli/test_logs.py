"""Logging: what the user should know appears once, on the display of a run; the rest goes to stderr by level."""

import json
import logging
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from arise.cli.app import app
from arise.cli.logs import LogLevel, configure
from arise.cli.main import written_by
from arise.observe.messages import shown_by
from arise.observe.terminal import Display, JsonDisplay

log = logging.getLogger("arise.somewhere")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, own = logging.getLogger(), logging.getLogger("arise")
    before = root.level, own.level, list(root.handlers)
    yield
    root.setLevel(before[0])
    own.setLevel(before[1])
    root.handlers[:] = before[2]


def say_everything() -> None:
    log.debug("for developers")
    log.info("for the user, key %s", "sk-" + "a" * 30)
    log.warning("watch out \x1b[31m")
    logging.getLogger("httpx").warning("noise of a library")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (LogLevel.WARNING, ["WARNING arise.somewhere: watch out \\x1b[31m"]),
        (
            LogLevel.DEBUG,
            [
                "DEBUG arise.somewhere: for developers",
                "INFO arise.somewhere: for the user, key [redacted]",
                "WARNING arise.somewhere: watch out \\x1b[31m",
            ],
        ),
        (LogLevel.ERROR, []),
    ],
)
def test_the_level_decides_what_stderr_gets(
    level: LogLevel, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configure(LogLevel.DEBUG)
    configure(level)
    say_everything()
    assert capsys.readouterr().err.splitlines() == expected


def test_a_display_shows_information_once_and_leaves_the_rest_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    configure(LogLevel.DEBUG)
    with shown_by(Display(lines.append, 4).tell):
        say_everything()
    assert [line[:12] for line in lines] == ["for the user", "watch out \x1b["]
    assert capsys.readouterr().err.splitlines() == ["DEBUG arise.somewhere: for developers"]
    say_everything()
    assert len(lines) == 2


def test_a_display_shows_information_whatever_the_level() -> None:
    lines: list[str] = []
    configure(LogLevel.ERROR)
    with shown_by(JsonDisplay(lines.append, 4).tell):
        log.info("warm start: cloning %d %%", 10)
    assert [json.loads(line) for line in lines] == [{"message": "warm start: cloning 10 %"}]
    assert logging.getLogger("arise").level == logging.ERROR


def test_the_option_and_the_variable_set_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(app, ["--log-level", "debug", "config"]).exit_code == 0
    assert logging.getLogger("arise").level == logging.DEBUG
    monkeypatch.setenv("ARISE_LOG_LEVEL", "ERROR")
    assert CliRunner().invoke(app, ["config"]).exit_code == 0
    assert logging.getLogger("arise").level == logging.ERROR
    assert CliRunner().invoke(app, ["--log-level", "loud", "config"]).exit_code == 2


@pytest.mark.parametrize("option", [["--log-level", "debug"], ["--log-level=debug"]])
def test_a_run_is_locked_early_with_a_log_level_too(option: list[str]) -> None:
    assert str(written_by([*option, "train", "--run-dir", "runs/a"])) == "runs/a"
