# ruff: noqa: E501 - one cheat per entry, as it would be typed
"""F10 in images, where the agent is root: agents that attack the verifier earn 0, honest ones earn 1."""

import asyncio
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from arise.rollouts.verifier import Verifier, VerifierResult
from arise.types import Place, Task, TaskSpec, VerifierSpec
from tests.containers.conftest import KINDS, pool_of
from tests.task_folders import DIFF_TEST
from tests.unit.rollouts.test_cheats import COMMAND_TEST, PYTEST_TEST, READING_TEST, TEST_ANSWER, forged

HONEST = "echo 42 > /app/answer.txt"
FORGE = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\nexit 0\n"
PASS_PYTEST = "import sys\nsys.exit(0)"
JSON_TEST = "jq -e . /app/answer.txt; echo $((! $?)) > /logs/verifier/reward.txt\n"


@dataclass(frozen=True)
class Cheat:
    """What a dishonest agent runs as root, against which test.sh."""

    commands: tuple[str, ...]
    test: str = DIFF_TEST


CHEATS = {
    "reward written beforehand": Cheat(("mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; chmod 444 /logs/verifier/*",)),
    "reward.json to take precedence": Cheat((forged("/logs/verifier/reward.json", '{"reward": 1}'),)),
    "logs that are a link": Cheat(("rm -rf /logs; mkdir /app/l; ln -s /app/l /logs; mkdir /logs/verifier; echo 1 > /logs/verifier/reward.txt",)),
    "daemon": Cheat(("(setsid nohup sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' >/dev/null 2>&1 &)",)),
    "preloaded library": Cheat(("cp /app/preload.so /usr/lib/p.so; echo /usr/lib/p.so > /etc/ld.so.preload",)),
    "library in front of libc": Cheat(
        ("cp /app/preload.so /usr/local/lib/libc.so.6; cp /app/preload.so /usr/local/lib/libtinfo.so.6; ldconfig",)
    ),
    "programs replaced": Cheat(("for n in diff cat bash; do cp /app/forge /usr/bin/$n.new; mv /usr/bin/$n.new /usr/bin/$n; done",)),
    "programs in front": Cheat(
        ("for n in diff cat test; do printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt\\n' > /usr/local/sbin/$n; chmod +x /usr/local/sbin/$n; done",)
    ),
    "a program that test.sh misses": Cheat(
        ("printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt; exit 1\\n' > /usr/local/bin/jq; chmod +x /usr/local/bin/jq",),
        JSON_TEST,
    ),
    "conftest": Cheat(
        (
            forged("/app/conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef skip():\n    pytest.skip('no')"),
            "cp /app/conftest.py /conftest.py; printf '[pytest]\\n' > /pytest.ini; mkdir -p /tests; cp /conftest.py /tests/",
        ),
        PYTEST_TEST,
    ),
    "skip as pass": Cheat((forged("/pytest.ini", "[pytest]\naddopts = --collect-only"), "cp /pytest.ini /app/"), PYTEST_TEST),
    "pytest replaced": Cheat(
        ("cd /usr/lib/python3/dist-packages; rm -rf pytest _pytest; mkdir pytest;" + forged("pytest/__init__.py", PASS_PYTEST) + "\ncp pytest/__init__.py pytest/__main__.py",),
        PYTEST_TEST,
    ),
    "code at the start of Python": Cheat(
        (
            forged("/usr/lib/python3/dist-packages/sitecustomize.py", "import os\nos._exit(0)"),
            forged("/usr/lib/python3/dist-packages/zz.pth", "import os; os._exit(0)"),
        ),
        COMMAND_TEST,
    ),
    "plugin of pytest": Cheat(
        (
            forged("/usr/lib/python3/dist-packages/evil.py", "def pytest_collection_modifyitems(items):\n    items[:] = []\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0"),
            forged("/usr/lib/python3/dist-packages/evil-1.dist-info/entry_points.txt", "[pytest11]\nevil = evil"),
            forged("/usr/lib/python3/dist-packages/evil-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: evil\nVersion: 1"),
        ),
        PYTEST_TEST,
    ),
    "answer that is a link to the tests": Cheat(("ln -s /tests/expected.txt /app/answer.txt",)),
    "the same by a detour": Cheat(("cd /app; ln -s /usr sub; ln -s sub/../tests/expected.txt answer.txt",)),
    "the same by /proc": Cheat(("ln -s /proc/self/root/tests/expected.txt /app/answer.txt",)),
    "tests replaced": Cheat((forged("/tests/test.sh", "echo 1 > /logs/verifier/reward.txt"),)),
    "system folder that is a link": Cheat(("cp -a /usr/bin /app/bin; rm -rf /usr/local/bin; ln -s /app/bin /usr/local/bin; cp /app/bin/true /app/bin/diff",)),
    "answer that never ends": Cheat(("mkfifo /app/answer.txt",), READING_TEST),
}  # fmt: skip


@pytest.fixture(scope="module")
def preload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that writes the reward in whatever program loads it."""
    folder = tmp_path_factory.mktemp("preload")
    (folder / "p.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n__attribute__((constructor)) void f(void) {\n"
        'FILE *f = fopen("/logs/verifier/reward.txt", "w"); if (f) { fputs("1", f); fclose(f); } _Exit(0); }\n'
    )
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "preload.so", "p.c"], cwd=folder, check=True)
    return folder / "preload.so"


def earn(
    kind: str, cheat: Cheat, commands: tuple[str, ...], image: Path, folder: Path, library: Path
) -> VerifierResult:
    tests = folder / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text(cheat.test)
    (tests / "expected.txt").write_text("42\n")
    (tests / "test_answer.py").write_text(TEST_ANSWER)
    place = Place(dockerfile=image, storage_mb=200, memory_mb=300)

    async def body() -> VerifierResult:
        async with pool_of(kind) as pool:
            box = await pool.open(place)
            await box.put(library, "/app/preload.so")
            await box.run(forged("/app/forge", FORGE) + "\nchmod 755 /app/forge", 10)
            for command in commands:
                await box.run(command, 20)
            task = TaskSpec(Task("t", "Do it."), tests, VerifierSpec(tests, 10), environment=place)
            return await Verifier(pool).verify(box, task)

    return asyncio.run(body())


QUICK = {"reward written beforehand", "daemon", "programs replaced", "conftest", "the same by /proc", "tests replaced"}
"""Attacks of different kinds that `make test` tries on podman too; a container takes a second to start."""
NORMAL = {*(("overlay", name) for name in CHEATS), *(("podman", name) for name in QUICK)}
ATTACKS = [
    pytest.param(name, kind, marks=() if (kind, name) in NORMAL else pytest.mark.slow)
    for name in CHEATS
    for kind in (*KINDS, "docker")
]


@pytest.mark.parametrize(("name", "kind"), ATTACKS, indirect=["kind"])
def test_cheat_earns_nothing(name: str, kind: str, tmp_path: Path, python_image: Path, preload: Path) -> None:
    result = earn(kind, CHEATS[name], CHEATS[name].commands, python_image, tmp_path, preload)
    assert (result.reward, result.success) == (0.0, False), result
    assert not result.fault


HONEST_TESTS = {cheat.test: cheat for cheat in CHEATS.values() if cheat.test != JSON_TEST}
"""One cheat for each different test.sh, but for the one that misses a program: honest work depends on nothing else."""


@pytest.mark.parametrize("cheat", HONEST_TESTS.values())
def test_honest_agent_earns_one_from_the_same_tests(
    cheat: Cheat, kind: str, tmp_path: Path, python_image: Path, preload: Path
) -> None:
    result = earn(kind, cheat, (HONEST,), python_image, tmp_path, preload)
    assert (result.reward, result.success) == (1.0, True), result
