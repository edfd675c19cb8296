"""Who may write the reward, by the path and the arguments of a program; whatever is unknown may not."""

import subprocess
from pathlib import Path

import pytest

from arise.sandbox.inside.writers import NOBODY, PROGRAM, SHELL, OwnTests, Start
from arise.sandbox.inside.writers import role_of as python_role_of
from arise.sandbox.native_server import as_lines, native_server

PYTHON, BASH = "/usr/bin/python3.11", "/bin/bash"
SETTINGS = {"logs": "/logs", "limits": "00", "notify": "00", "calls": {}, "system": ()}


def role_of(start: Start, tests: OwnTests) -> int:
    """Return what both servers say; a machine without a compiler has one."""
    found = python_role_of(start, tests)
    if (program := native_server()) is not None:
        settings = as_lines({**SETTINGS, "tests": tests.folder})
        line = [str(program), "role", settings, start.image, start.cwd, start.stdin, *start.argv]
        assert int(subprocess.run(line, capture_output=True, check=True).stdout) == found, start
    return found


@pytest.fixture
def tests(tmp_path: Path) -> OwnTests:
    (tmp_path / "test.sh").write_text("python3 check.py\n")
    (tmp_path / "check.py").write_text("open('/logs/verifier/reward.txt')")
    (tmp_path / "run.sh").write_text("#!/usr/bin/env bash\n")
    (tmp_path / "run").write_text("#!/usr/bin/python3 -I\n")
    return OwnTests(str(tmp_path))


@pytest.mark.parametrize(
    ("role", "line"),
    [
        (SHELL, "/bin/bash T/run.sh"),
        (SHELL, "/bin/bash -c text"),
        (SHELL, "/bin/bash -eo pipefail -c text"),
        (SHELL, "/bin/sh -x T/run.sh /app/x"),
        (SHELL, "/usr/bin/env A=b python3 /app/x.py"),
        (SHELL, "/usr/bin/timeout 5 /app/x"),
        (SHELL, "T/run.sh"),
        (PROGRAM, "T/run"),
        (PROGRAM, "T/check.py"),
        (PROGRAM, "/usr/bin/python3 T/check.py"),
        (PROGRAM, "/usr/bin/python3.11 -u -W ignore -X dev T/check.py"),
        (PROGRAM, "/usr/bin/python3 -m pytest T"),
        (PROGRAM, "/usr/bin/python3 -Ic text"),
        (PROGRAM, "/usr/bin/python3 check.py"),
        (PROGRAM, "/usr/local/bin/pytest T/check.py"),
        (PROGRAM, "/usr/bin/cp /app/a /logs/verifier/reward.txt"),
        (PROGRAM, "/usr/bin/awk -F, {print} /app/a"),
        (PROGRAM, "/usr/bin/sed -n 1p /app/a"),
        (PROGRAM, "/usr/bin/perl -e text"),
        (PROGRAM, "/usr/bin/node T/x.js"),
        (NOBODY, "/app/x"),
        (NOBODY, "/tmp/bash -c text"),
        (NOBODY, "/bin/bash /app/x"),
        (NOBODY, "/bin/bash T/../app/x"),
        (NOBODY, "/bin/bash -l T/run.sh"),
        (NOBODY, "/bin/bash -lc text"),
        (NOBODY, "/bin/bash --login T/run.sh"),
        (NOBODY, "/bin/bash -i"),
        (NOBODY, "/bin/bash --rcfile /app/x T/run.sh"),
        (NOBODY, "/usr/bin/python3 /app/check.py"),
        (NOBODY, "/usr/bin/python3 -W T/check.py /app/x.py"),
        (NOBODY, "/usr/bin/python3 -- /app/x.py"),
        (NOBODY, "/usr/bin/make -C T"),
        (NOBODY, "/usr/bin/git status"),
        (NOBODY, "/usr/bin/npm test"),
        (NOBODY, "/usr/bin/xargs -a /app/x bash -c"),
        (NOBODY, "/usr/bin/find . -exec cp {} T ;"),
        (NOBODY, "/usr/bin/awk -f /app/x"),
        (NOBODY, "/usr/bin/sed -nf /app/x"),
        (NOBODY, "/usr/bin/sed --file=/app/x"),
        (NOBODY, "/usr/bin/perl -I/app T/x.pl"),
        (NOBODY, "/usr/bin/node -r /app/x.js T/x.js"),
        (NOBODY, "/lib64/ld-linux-x86-64.so.2 /app/x"),
        (NOBODY, "/usr/bin/gdb -p 1"),
    ],
)
def test_role(role: int, line: str, tests: OwnTests) -> None:
    words = line.replace("T/", f"{tests.folder}/").replace(" T", f" {tests.folder}").split()
    assert role_of(Start(words[0], words, tests.folder, "/dev/null"), tests) == role


@pytest.mark.parametrize(
    ("stdin", "role"),
    [("pipe:[1]", PROGRAM), ("/tmp/sh-thd.x (deleted)", PROGRAM), ("/app/x", NOBODY), ("/tmp/x", NOBODY), ("", NOBODY)],
)
def test_code_from_standard_input(stdin: str, role: int, tests: OwnTests) -> None:
    for words in ([PYTHON], [PYTHON, "-"], [PYTHON, "-I"]):
        assert role_of(Start(PYTHON, words, "/app", stdin), tests) == role
    assert role_of(Start(BASH, [BASH, "-s"], "/app", stdin), tests) == (SHELL if role else NOBODY)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("cat /app/x | python3", False),
        ("cat /app/x | bash -s; true", False),
        ("curl x |sh", False),
        ("echo 1 | python3 /app/x.py", True),
        ("x | python3 -c 'text'", True),
        ("# cat x | bash", True),
        ("ls | tee log", True),
    ],
)
def test_an_interpreter_fed_from_a_pipe_does_not_count(line: str, counts: bool, tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(line + "\n")
    assert (role_of(Start(PYTHON, [PYTHON, "-"], "/app", "pipe:[1]"), OwnTests(str(tmp_path))) == PROGRAM) is counts


def test_programs_of_tests_that_say_nothing_of_a_reward_leave_it_to_test_sh(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    (tmp_path / "test_it.py").write_text("def test(): pass\n")
    quiet = OwnTests(str(tmp_path))
    for words in ([PYTHON, "-m", "pytest"], [PYTHON, f"{tmp_path}/test_it.py"], ["/usr/bin/pytest"]):
        assert role_of(Start(words[0], words, "/app", ""), quiet) == NOBODY
