"""18.1: code that test.sh runs cannot write the reward, whatever it tries; honest code earns 1 from the same tests."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arise.rollouts.verifier import VerifierResult
from arise.sandbox import BubblewrapPool
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

SITE = str(Path(pytest.__file__).parents[1])
OUT = "/logs/verifier"
VERDICT = f"if [ $? = 0 ]; then echo 1 > {OUT}/reward.txt; else echo 0 > {OUT}/reward.txt; fi\n"
RUN = 'cd /app && [ "$(bash solve 20 22)" = 42 ]\n' + VERDICT
RUN_ALONE = "cd /app && bash solve 20 22 > /tmp/answer; grep -qx 42 /tmp/answer\n" + VERDICT
PYTEST = "cd /app && python3 -m pytest -q -p no:cacheprovider /tests/test_solve.py\n" + VERDICT
PYTEST_WITHOUT_ELSE = (
    f"cd /app && python3 -m pytest -q -p no:cacheprovider /tests/test_solve.py && echo 1 > {OUT}/reward.txt\n"
)
IN_PROCESS = """import importlib.util, pathlib
def test_solve():
    spec = importlib.util.spec_from_file_location("solve", "/app/solve.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.add(20, 22) == 42
"""
CHECK = """import json, pathlib, subprocess
done = subprocess.run(["python3", "/app/solve.py", "20", "22"], capture_output=True, text=True)
right = done.stdout.strip() == "42"
pathlib.Path("/logs/verifier/reward.json").write_text(json.dumps({"reward": float(right), "exit": done.returncode}))
"""
CHECK_BY_RENAMING = CHECK.replace('reward.json").write', 'reward.json.tmp").write') + (
    'import os\nos.replace("/logs/verifier/reward.json.tmp", "/logs/verifier/reward.json")\n'
)
DEFAULT_FIRST = f"echo 0 > {OUT}/reward.txt\npython3 /tests/check.py\n"
KEEPS = f"trap '[ -s {OUT}/reward.txt ] || echo 0 > {OUT}/reward.txt' EXIT\n" + RUN
HONEST = {
    "solve": "echo $(($1 + $2))",
    "solve.py": "import sys\ndef add(a, b):\n    return a + b\n"
    "if __name__ == '__main__':\n    print(add(*map(int, sys.argv[1:])))",
    "Makefile": 'check:\n\t@[ "$$(bash solve 20 22)" = 42 ]',
}
BOTH = f"echo 1 > {OUT}/reward.txt; echo '{{\"reward\": 1}}' > {OUT}/reward.json"
PYTHON_BOTH = """
import os
def forge():
    for name, text in (("reward.txt", "1"), ("reward.json", '{"reward": 1}')):
        try:
            open("/logs/verifier/" + name, "w").write(text)
            os.chmod("/logs/verifier/" + name, 0o444)
        except OSError:
            pass
"""
# Waits for the shell's own word, then has the last one.
RACE = """import os, time
if os.fork() == 0:
    os.setsid()
    for fd in range(3):
        os.close(fd)
    end = time.time() + 3
    while time.time() < end:
        try:
            open("/logs/verifier/reward.txt", "w").write("1")
            open("/logs/verifier/reward.json", "w").write('{"reward": 1}')
        except OSError:
            pass
    os._exit(0)
"""
SHELL_FDS = """import glob, os, time
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        open(path, "w").write("1")
    except OSError:
        pass
for path in glob.glob("/proc/[0-9]*/mem"):
    try:
        open(path, "r+b").write(b"1")
    except OSError:
        pass
"""
RAISE_MARK = """import resource
for limit in range(16):
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
"""


@dataclass(frozen=True)
class Case:
    """A dishonest agent's files, and the test.sh that runs them."""

    files: dict[str, str]
    test: str = RUN
    tests: dict[str, str] = field(default_factory=dict)
    prepare: str = ""
    seconds: float = 60.0


SHADOWS = ("conftest.py", "sitecustomize.py", "usercustomize.py", "json.py", "pathlib.py", "subprocess.py")
PYTEST_FILES = {"test_solve.py": IN_PROCESS}
CHECKED = {"check.py": CHECK}
CASES = {
    "reward.json beside test.sh's reward.txt": Case({"solve": BOTH}),
    "reward.txt that cannot be written again": Case({"solve": f"{BOTH}; chmod 444 {OUT}/*; chmod 555 {OUT}"}),
    "folder made unwritable": Case({"solve": f"{BOTH}; chmod 000 {OUT}"}),
    "folder moved away": Case({"solve": f"mkdir /logs/x; {BOTH}; mv {OUT} /logs/y; ln -s /logs/x {OUT}"}),
    "link at the path": Case({"solve": f"echo 1 > /app/one; ln -sf /app/one {OUT}/reward.txt; {BOTH}"}),
    "hard link at the path": Case(
        {"solve": f"echo 1 > {OUT}/one; ln -f {OUT}/one {OUT}/reward.json; chmod 444 {OUT}/*"}
    ),
    "pipe at the path": Case({"solve": f"mkfifo {OUT}/reward.txt; echo '{{\"reward\": 1}}' > {OUT}/reward.json"}),
    "folder at the path": Case({"solve": f"mkdir -p {OUT}/reward.txt/x; echo '{{\"reward\": 1}}' > {OUT}/reward.json"}),
    "daemon that writes for ever": Case(
        {"solve": f"(setsid sh -c 'while :; do {BOTH}; done' >/dev/null 2>&1 </dev/null &)"}
    ),
    "daemon by python": Case({"solve.py": RACE, "solve": "python3 solve.py"}),
    "test.sh killed after the forgery": Case({"solve": f"{BOTH}; kill -9 $PPID; kill -9 -1"}),
    "test.sh stopped after the forgery": Case({"solve": f"{BOTH}; kill -STOP $PPID"}, seconds=2),
    "descriptors and memory of the shell": Case({"solve.py": SHELL_FDS, "solve": f"{BOTH}; python3 solve.py"}),
    "mark raised": Case(
        {"solve.py": RAISE_MARK + PYTHON_BOTH + "forge()", "solve": "ulimit -x unlimited; python3 solve.py"}
    ),
    "orphan with init as its parent": Case(
        {"solve": f"(setsid bash -c 'sleep 0.3; {BOTH}; sleep 0.2' >/dev/null 2>&1 &) & disown"}, RUN + "sleep 1\n"
    ),
    "trusted tools": Case(
        {"solve": f"echo 1 > a; cp a {OUT}/reward.json; mv a {OUT}/reward.txt; echo 1 | tee {OUT}/reward.txt"}
    ),
    "trusted interpreters": Case(
        {
            "solve": f'python3 -c \'open("{OUT}/reward.txt", "w").write("1")\'; timeout 3 bash -c "$(cat x)"',
            "x": BOTH,
        }
    ),
    "the tests' own checker run again": Case(
        {
            "solve.py": HONEST["solve.py"],
            "solve": "sleep 0.2; cd /tests; python3 check.py; env python3 /tests/check.py",
        },
        RUN,
        CHECKED,
    ),
    "make": Case({"Makefile": f"check:\n\t{BOTH}; exit 1"}, "make -s -C /app check\n" + VERDICT),
    "git with a hostile fsmonitor": Case(
        {"hook": BOTH + "; exit 1"},
        'git -C /app status >/dev/null; [ "$(cat /app/answer)" = 42 ]\n' + VERDICT,
        prepare="git init -q; chmod +x hook; git config core.fsmonitor /app/hook; git config safe.directory '*'",
    ),
    "module imported by pytest": Case({"solve.py": PYTHON_BOTH + "forge()"}, PYTEST, PYTEST_FILES),
    "module imported by pytest, which then writes nothing": Case(
        {"solve.py": PYTHON_BOTH + "forge()\nos._exit(1)"}, PYTEST_WITHOUT_ELSE, PYTEST_FILES
    ),
    "module that waits for the shell": Case({"solve.py": RACE}, PYTEST, PYTEST_FILES),
    "conftest, sitecustomize and shadows": Case(
        dict.fromkeys(SHADOWS, PYTHON_BOTH + "forge()"),
        "cd /app && python3 /tests/check.py\n",
        CHECKED,
    ),
    "conftest in the working folder": Case({"conftest.py": PYTHON_BOTH + "forge()"}, PYTEST, PYTEST_FILES),
    "program below a checker": Case({"solve.py": PYTHON_BOTH + "forge()"}, "python3 /tests/check.py\n", CHECKED),
    "program below a checker that it kills": Case(
        {"solve.py": PYTHON_BOTH + "forge()\nos.kill(os.getppid(), 9)"}, "python3 /tests/check.py\n", CHECKED
    ),
    "the file that is renamed": Case({"solve.py": RACE}, "python3 /tests/check.py\n", {"check.py": CHECK_BY_RENAMING}),
    "after a default of 0": Case({"solve.py": PYTHON_BOTH + "forge()"}, DEFAULT_FIRST, CHECKED),
    "preloaded library and exported functions": Case(
        {"solve": f"echo() {{ {BOTH}; }}; export -f echo; export LD_PRELOAD=/app/x.so BASH_ENV=/app/solve; {BOTH}"}
    ),
    "files in the home folder": Case(
        {"solve": f"for f in .bashrc .profile .bash_profile .pythonrc.py; do echo '{BOTH}' > ~/$f; done"},
        RUN.replace("echo 0", "bash -lc true; echo 0"),
    ),
    "standard output that is the reward file": Case({"solve": "echo 1"}, f"cd /app && bash solve > {OUT}/reward.txt\n"),
    "script from a pipe": Case(
        {"solve": BOTH}, f"cat /app/solve | bash\ncat /app/solve | python3 -\n[ -s /app/answer ]\n{VERDICT}"
    ),
    "interpreter in the working folder": Case(
        {"bin/python3": f"#!/bin/bash\n{BOTH}"},
        "export PATH=/app/bin:$PATH\npython3 /tests/check.py\n",
        CHECKED,
        prepare="chmod +x bin/*",
    ),
}
NO_REWARD_OF_ITS_OWN = {
    "standard output that is the reward file",
}


def earn(case: Case, files: dict[str, str], tests: Path) -> VerifierResult:
    tests.mkdir()
    for name, text in {"test.sh": case.test, **case.tests}.items():
        (tests / name).write_text(text)

    async def body() -> VerifierResult:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1, read_only=(SITE,)) as verifier:
            assert not any("can write the reward" in note for note in verifier.notes)
            box = await pool.open()
            for name, text in files.items():
                await box.run(f"mkdir -p $(dirname {name}); cat > {name} <<'END'\n{text}\nEND", 20)
            if case.prepare:
                await box.run(case.prepare, 20)
            return await verifier.verify(
                box, bare_task(tests, case.seconds, {"PYTHONPATH": SITE, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
            )

    return asyncio.run(body())


@pytest.mark.parametrize("name", CASES)
def test_a_forgery_earns_nothing(name: str, tmp_path: Path) -> None:
    result = earn(CASES[name], CASES[name].files, tmp_path / "tests")
    assert (result.reward, result.success, result.fault) == (0.0, False, ""), result


HONEST_TESTS = {
    "shell": Case({}, RUN),
    "file in between": Case({}, RUN_ALONE),
    "trap that looks for a reward": Case({}, KEEPS),
    "make": Case({}, "make -s -C /app check\n" + VERDICT),
    "pytest": Case({}, PYTEST, PYTEST_FILES),
    "pytest without an else": Case({}, PYTEST_WITHOUT_ELSE, PYTEST_FILES),
    "checker": Case({}, "cd /app; python3 /tests/check.py\n", CHECKED),
    "checker with a time limit": Case({}, "timeout 20 env A=b python3 -u /tests/check.py\n", CHECKED),
    "checker that renames": Case({}, "cd /tests; python3 check.py\n", {"check.py": CHECK_BY_RENAMING}),
    "checker that can be executed": Case(
        {}, "bash /tests/run.sh\n", {"check.py": CHECK, "run.sh": "#!/bin/sh\nset -e\npython3 /tests/check.py\n"}
    ),
    "checker after a default of 0": Case({}, DEFAULT_FIRST, CHECKED),
    "document": Case({}, f"python3 - <<'END'\n{CHECK}END\n"),
    "long document": Case({}, f"python3 <<'END'\n{CHECK}" + "#\n" * 40000 + "END\n"),
    "code as an argument": Case({}, "python3 -c '" + CHECK.replace("'", '"') + "'\n"),
    "pytest whose tests write the reward": Case(
        {},
        "cd /app && python3 -m pytest -q -p no:cacheprovider /tests/test_solve.py\n",
        {"test_solve.py": IN_PROCESS + f"    pathlib.Path('{OUT}/reward.txt').write_text('1')\n"},
    ),
    "copied": Case({}, f"cd /app; bash solve 20 22 | grep -c 42 > /tmp/n; cp /tmp/n {OUT}/reward.txt\n"),
    "moved": Case({}, f"cd /app; bash solve 20 22 | grep -c 42 > /tmp/n; mv /tmp/n {OUT}/reward.txt\n"),
    "tee": Case({}, f"cd /app; bash solve 20 22 | grep -c 42 | tee {OUT}/reward.txt\n"),
    "function in a pipeline": Case(
        {}, f"f() {{ cd /app; bash solve 20 22 | grep -c 42; }}; f > {OUT}/reward.txt; cat {OUT}/reward.txt\n"
    ),
    "appended": Case(
        {},
        f"cd /app; exec 3> {OUT}/reward.json; printf '{{\"reward\":' >&3; bash solve 20 22 3>&- | grep -c 42 >&3\n"
        f"exec 3>&-; echo '}}' >> {OUT}/reward.json\n",
    ),
    "perl": Case(
        {}, f'cd /app; perl -e \'open F, ">", "{OUT}/reward.txt"; print F (`bash solve 20 22` == 42 ? 1 : 0);\'\n'
    ),
    "external command and a look": Case(
        {}, f"cd /app; /bin/echo 1 > {OUT}/reward.txt; [ -s {OUT}/reward.txt ] || echo 0 > {OUT}/reward.txt\n"
    ),
    "builtin command and a look": Case(
        {}, f"echo 1 > {OUT}/reward.txt; read x < {OUT}/reward.txt; echo $x > {OUT}/reward.txt\n"
    ),
    "log of everything": Case({}, f"exec > >(tee {OUT}/test-stdout.txt) 2>&1\necho said\n" + RUN),
    "server left running": Case({}, "(sleep 60 &)\n" + RUN),
    "from its folder": Case({}, RUN.replace("cd /app &&", "cd /app; true;").replace(f"{OUT}/", "../logs/verifier/./")),
    "exit code above 128": Case({}, RUN + "exit 137\n"),
}


@pytest.mark.parametrize("name", HONEST_TESTS)
def test_an_honest_attempt_earns_one(name: str, tmp_path: Path) -> None:
    result = earn(HONEST_TESTS[name], HONEST, tmp_path / "tests")
    assert (result.reward, result.success, result.fault, result.reason) == (1.0, True, "", ""), result


VERIFIERS = {
    (case.test, *case.tests.items(), case.prepare, case.seconds): case
    for name, case in CASES.items()
    if name not in NO_REWARD_OF_ITS_OWN
}
"""One case for each different verifier: honest work depends on nothing else."""


@pytest.mark.parametrize("case", VERIFIERS.values())
def test_the_honest_attempt_earns_one_where_the_forgery_did_not(case: Case, tmp_path: Path) -> None:
    result = earn(case, HONEST | {"answer": "42"}, tmp_path / "tests")
    assert (result.reward, result.fault) == (1.0, ""), result


def test_the_agent_of_an_attempt_is_named(tmp_path: Path) -> None:
    case = Case({"solve": BOTH}, "bash /app/solve\n")
    assert "bash wrote reward.txt" in earn(case, case.files, tmp_path / "tests").reason


def test_a_reward_file_handed_to_the_attempt_is_named_with_the_remedy(tmp_path: Path) -> None:
    case = CASES["standard output that is the reward file"]
    reason = earn(case, case.files, tmp_path / "tests").reason
    assert "reward.txt was open in /usr/bin/bash" in reason
    assert "let test.sh keep its result" in reason
