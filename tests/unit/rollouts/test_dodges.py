"""18.2, 17.10: nothing that an attempt leaves or starts makes its verification a fault; it scores 0 with the reason."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from arise.rollouts.verifier import VerifierResult
from arise.sandbox import MIB, BubblewrapPool, Limits
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

OUT = "/logs/verifier"
LIMITS = Limits(memory_bytes=256 * MIB, disk_bytes=64 * MIB, tmp_bytes=16 * MIB, processes=64)
# Says 0 where it comes to its end: each of the attempts below must not even get that far, or get no more than that.
TEST = f"cd /app && bash program; [ -s answer ]; echo $((! $?)) > {OUT}/reward.txt\n"
READS = f"cat /app/* > /dev/null; [ -s /app/answer ]; echo $((! $?)) > {OUT}/reward.txt\n"
LOOKS = f'[ -z "$(find /app -name forbidden)" ]; echo $((! $?)) > {OUT}/reward.txt\n'
# Folders in each other until no path names the innermost, with a file of two names in it.
DEEP = """import os
for _ in range({levels}):
    os.mkdir("d" * {length})
    os.chdir("d" * {length})
open("a", "w").close()
os.link("a", "b")
"""
MANY = """import os
for n in range(21):
    os.mkdir(f"d{n}")
    for m in range(1000):
        open(f"d{n}/{m}", "w").close()
"""


def python(code: str) -> str:
    return f"python3 - <<'END'\n{code}\nEND"


def program(text: str) -> str:
    return f"cat > program <<'END'\n{text}\nEND"


@dataclass(frozen=True)
class Dodge:
    """What the agent runs, against which test.sh, and why it gets 0; "" where test.sh itself says so."""

    agent: str
    reason: str = ""
    test: str = TEST
    seconds: float = 30.0


DODGES = {
    "hang": Dodge(program("sleep 100"), "timeout limit", seconds=1),
    "hang that ignores signals": Dodge(
        program("trap '' TERM INT HUP; while :; do sleep 1; done"), "timeout", seconds=1
    ),
    "test.sh stopped": Dodge(program("kill -STOP $PPID"), "timeout limit", seconds=1),
    "test.sh killed": Dodge(program("kill -9 $PPID"), "signal 9"),
    "everything killed": Dodge(program("kill -9 -1"), "signal 9"),
    "endless output": Dodge(program("yes"), "output limit"),
    "all memory": Dodge(
        program("while :; do (python3 -c 'x = bytearray(10**8); import time; time.sleep(9)' &) ; done"),
        "test.sh was ended",
        seconds=5,
    ),
    "all memory in files": Dodge(
        program(f"cat /dev/zero > {OUT}/x; cat /dev/zero > /tmp/x; cat /dev/zero > /dev/shm/x")
    ),
    "all processes": Dodge(program(":(){ :|:& };:; sleep 30"), "timeout limit", seconds=3),
    "processes left behind": Dodge(program("for i in 1 2 3; do (setsid sleep 100 &) ; done")),
    "reward file that is a folder": Dodge(program(f"mkdir -p {OUT}/reward.txt/x {OUT}/reward.json/x")),
    "reward folder closed": Dodge(program(f"chmod 0 {OUT}; chmod 0 /logs")),
    "reward folder full of links": Dodge(program(f"ln -s reward.txt {OUT}/reward.txt; ln -s / {OUT}/reward.json")),
    "server interrupted": Dodge(program("kill -INT 1; kill -TERM 1; kill -KILL 1; sleep 0.2")),
    "server starved of descriptors": Dodge(program("prlimit --pid 1 --nofile=3 --as=1000 --cpu=0; sleep 0.2")),
    "server of the attempt interrupted": Dodge("kill -INT 1; prlimit --pid 1 --nofile=3 --cpu=0 --as=1000; sleep 0.2"),
    "folders deeper than a path": Dodge(python(DEEP.format(levels=40, length=250))),
    "folders deeper than allowed": Dodge(python(DEEP.format(levels=80, length=3)), "folders deep"),
    "more files than allowed": Dodge(python(MANY), "more than 20000 files"),
    "a forbidden file behind many": Dodge(python(MANY) + "\ntouch zz-forbidden", "more than 20000 files", LOOKS),
    "a forbidden file that nobody may read": Dodge("mkdir d; touch d/forbidden; chmod 0 d/forbidden d", "", LOOKS),
    "names that are not UTF-8": Dodge(
        python('open(b"\\xff\\xfe", "w").close(); import os; os.symlink(b"/\\xfe", b"\\xfd")')
    ),
    "names of control characters": Dodge(
        python('open("\\x1b[2J\\n\\r\\u202e", "w").close(); open("-rf", "w").close()')
    ),
    "working folder closed": Dodge("mkdir d; touch d/x; chmod 0 d /app"),
    "working folder full": Dodge("head -c 100M /dev/zero > zero; mkfifo pipe; ln -s /proc/self/fd/0 link", "", READS),
    "sparse file": Dodge("truncate -s 60M sparse; head -c 1M /dev/zero >> sparse"),
    "sockets and devices": Dodge(python("import socket\nsocket.socket(socket.AF_UNIX).bind('s')")),
    "links in a circle": Dodge(
        "ln -s b a; ln -s a b; ln -s . here; mkdir c; ln -s ../c c/c", "", READS.replace("cat /app/*", "cat -- a b")
    ),
    "attempt that ran out of memory": Dodge("python3 -c 'x = bytearray(10**9)'"),
}


def earn(dodge: Dodge, tests: Path) -> VerifierResult:
    tests.mkdir()
    (tests / "test.sh").write_text(dodge.test)

    async def body() -> VerifierResult:
        async with BubblewrapPool(1, LIMITS) as pool, bubblewrap_verifier(1, LIMITS) as verifier:
            box = await pool.open()
            await box.run(dodge.agent, 60)
            await box.run("true", 10)  # the sandbox is still there
            return await verifier.verify(box, bare_task(tests, dodge.seconds))

    return asyncio.run(body())


@pytest.mark.parametrize("name", DODGES)
def test_an_evasion_scores_0_with_its_reason(name: str, tmp_path: Path) -> None:
    result = earn(DODGES[name], tmp_path / "tests")
    assert (result.reward, result.success, result.fault) == (0.0, False, ""), result
    assert DODGES[name].reason in result.reason
    assert bool(DODGES[name].reason) == bool(result.reason), result.reason
    assert result.stdout.encode().decode() == result.stdout


@pytest.mark.parametrize("test", [TEST, READS])
def test_honest_work_earns_1_from_the_same_tests(test: str, tmp_path: Path) -> None:
    assert earn(Dodge("echo 42 > answer; echo true > program", test=test), tmp_path / "tests").reward == 1.0
