"""F10: agents that attack the verifier earn 0, and honest ones earn 1 from the very same tests."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arise.rollouts.verifier import VerifierResult
from arise.sandbox import BubblewrapPool
from tests.task_folders import DIFF_TEST, bare_task
from tests.verifiers import bubblewrap_verifier

SITE = str(Path(pytest.__file__).parents[1])
PYTHON_TEST = """python3 - <<'END'
import json, os
ok = os.path.exists("answer.txt") and json.loads(open("answer.txt").read()) == 42
open("/logs/verifier/reward.json", "w").write(json.dumps({"reward": int(ok)}))
END
"""
COMMAND_TEST = """python3 -c 'import json; exit(json.load(open("/app/answer.txt")) != 42)'
echo $((! $?)) > /logs/verifier/reward.txt
"""
PYTEST_TEST = """python3 -m pytest -q /tests/test_answer.py
echo $((! $?)) > /logs/verifier/reward.txt
"""
TEST_ANSWER = """def test_answer():
    assert open("/app/answer.txt").read() == "42\\n"
"""
READING_TEST = """[ "$(cat answer.txt)" = 42 ]
echo $((! $?)) > /logs/verifier/reward.txt
"""
LOGGING_TEST = "echo checked > /app/log.txt\n" + DIFF_TEST
HONEST = "echo 42 > answer.txt"


@dataclass(frozen=True)
class Cheat:
    """What a dishonest agent runs, against which test.sh."""

    commands: tuple[str, ...]
    test: str = DIFF_TEST
    environment: dict[str, str] = field(default_factory=dict)


def forged(name: str, content: str) -> str:
    return f"mkdir -p $(dirname {name}) && cat > {name} <<'END'\n{content}\nEND"


SHADOW = 'import os\nopen("/logs/verifier/reward.txt", "w").write("1")\nos._exit(0)'
SHIM = """for d in /app /app/bin ~/bin ~/.local/bin; do
  mkdir -p $d
  for n in diff python3 cat test; do printf '#!/bin/sh\\nexit 0\\n' > $d/$n; chmod +x $d/$n; done
done"""
PRELOAD = """cat > p.c <<'END'
#include <stdlib.h>
int main(); __attribute__((constructor)) void f(void) { system("echo 1 > /logs/verifier/reward.txt"); _Exit(0); }
END
gcc -shared -fPIC -o /app/p.so p.c || touch /app/p.so
echo /app/p.so > /etc/ld.so.preload
for f in ~/.bashrc ~/.profile ~/.bash_profile /app/.bashrc /app/.env; do echo 'export LD_PRELOAD=/app/p.so' > $f; done
export LD_PRELOAD=/app/p.so"""

CHEATS = {
    "reward written beforehand": Cheat(("mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",)),
    "reward.json to take precedence": Cheat(
        (forged("/logs/verifier/reward.json", '{"reward": 1}'), "cp -r /logs /app")
    ),
    "daemon": Cheat(("(setsid nohup sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' >/dev/null 2>&1 &)",)),
    "preloaded library": Cheat((PRELOAD,)),
    "programs in the way": Cheat((SHIM, "export PATH=/app:$PATH; echo 'PATH=/app:$PATH' >> ~/.bashrc")),
    "conftest": Cheat(
        (
            forged("conftest.py", "def pytest_collection_modifyitems(items):\n    del items[:]"),
            forged("conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef skip():\n    pytest.skip('no')"),
            "cp conftest.py /conftest.py; mkdir -p /tests && cp conftest.py /tests/",
        ),
        PYTEST_TEST,
        {"PYTHONPATH": SITE},
    ),
    "skip as pass": Cheat(
        (
            forged("pytest.ini", "[pytest]\naddopts = --collect-only"),
            forged("setup.cfg", "[tool:pytest]\naddopts = --collect-only"),
            forged("pytest.py", "import sys\nsys.exit(0)"),
        ),
        PYTEST_TEST,
        {"PYTHONPATH": SITE},
    ),
    "links to the logs": Cheat(
        ("ln -s /logs/verifier logs; ln -s /logs/verifier/reward.json log.txt; echo 1 > log.txt",), LOGGING_TEST
    ),
    "answer that is a link to the tests": Cheat(("ln -s /tests/expected.txt answer.txt",)),
    "the same by a detour": Cheat(("ln -s /usr sub; ln -s sub/../tests/expected.txt answer.txt; ln -s ../tests t",)),
    "library in the working folder": Cheat(
        (forged("json.py", SHADOW), "cp json.py sitecustomize.py; cp json.py os.py; cp json.py usercustomize.py"),
        COMMAND_TEST,
    ),
    "library for a script on standard input": Cheat((forged("json.py", SHADOW),), PYTHON_TEST),
    "tests replaced": Cheat((forged("/tests/test.sh", "echo 1 > /logs/verifier/reward.txt"), "ln -s /tests tests")),
    "answer that never ends": Cheat(("mkfifo answer.txt",), READING_TEST),
    "answer that is a device": Cheat(("ln -s /dev/zero answer.txt",), READING_TEST),
}


def earn(cheat: Cheat, commands: tuple[str, ...], tests: Path) -> VerifierResult:
    tests.mkdir()
    (tests / "test.sh").write_text(cheat.test)
    (tests / "expected.txt").write_text("42\n")
    (tests / "test_answer.py").write_text(TEST_ANSWER)

    async def body() -> VerifierResult:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1, read_only=(SITE,)) as verifier:
            box = await pool.open()
            for command in commands:
                await box.run(command, 20)
            return await verifier.verify(box, bare_task(tests, 30, cheat.environment))

    return asyncio.run(body())


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_earns_nothing(name: str, tmp_path: Path) -> None:
    result = earn(CHEATS[name], CHEATS[name].commands, tmp_path / "tests")
    assert (result.reward, result.success) == (0.0, False), (result.fault, result.stdout)


VERIFIERS = {(cheat.test, *cheat.environment.items()): cheat for cheat in CHEATS.values()}
"""One cheat for each different verifier: honest work depends on nothing else."""


@pytest.mark.parametrize("cheat", VERIFIERS.values())
def test_honest_agent_earns_one_from_the_same_tests(cheat: Cheat, tmp_path: Path) -> None:
    result = earn(cheat, (HONEST,), tmp_path / "tests")
    assert (result.reward, result.success) == (1.0, True), (result.fault, result.stdout)


def test_there_are_at_least_12_cheats() -> None:
    assert len(CHEATS) >= 12
