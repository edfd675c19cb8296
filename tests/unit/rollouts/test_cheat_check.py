"""`tasks check --cheat`: what the guard cannot protect is found out by trying, and can be refused."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arise.cli.tasks import app
from arise.compose.sandboxes import trial_pools
from arise.config import HarborTasks
from arise.errors import AriseError, Exit
from arise.rollouts.cheats import CHEATS, require_unforgeable
from arise.sandbox.choose import why_no_images
from arise.tasks import load_corpus
from tests.task_folders import write_task

OUT = "/logs/verifier"
VERDICT = f"&& echo 1 > {OUT}/reward.txt || echo 0 > {OUT}/reward.txt\n"
IN_PROCESS = f"""import json, sys
sys.path.insert(0, "/app")
try:
    import solve
    right = solve.answer() == 42
except Exception:
    right = False
json.dump({{"reward": int(right)}}, open("{OUT}/reward.json", "w"))
"""
BELOW = f"""import json, subprocess
said = subprocess.run(["python3", "/app/solve.py"], capture_output=True, text=True).stdout
json.dump({{"reward": int(said == "42" + chr(10))}}, open("{OUT}/reward.json", "w"))
"""


def write(folder: Path, name: str, test: str, solve: str, check: str = "") -> None:
    directory = write_task(folder / name, test=test, solve=solve)
    if check:
        (directory / "tests/check.py").write_text(check)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_task(folder / "compared")
    write(folder, "program", f'cd /app && [ "$(bash solve.sh)" = 42 ] {VERDICT}', "echo echo 42 > solve.sh")
    write(folder, "below", "python3 /tests/check.py\n", "echo 'print(42)' > solve.py", BELOW)
    write(folder, "made", f'make -s -C /app answer; [ "$(cat /app/answer)" = 42 ] {VERDICT}', "echo 42 > answer")
    write(folder, "in-process", "python3 /tests/check.py\n", "echo 'def answer(): return 42' > solve.py", IN_PROCESS)
    write(folder, "exit-code", f"python3 /app/solve.py {VERDICT}", "echo 'print(42)' > solve.py")
    write(folder, "copied", f"cp /app/score {OUT}/reward.txt || echo 0 > {OUT}/reward.txt\n", "echo 1 > score")
    return folder


FORGEABLE = {
    "in-process": "programs of the attempt write the reward",
    "exit-code": "programs of the attempt do nothing and end with exit code 0",
    "copied": "a file of the attempt is taken for reward.txt",
}


def test_exactly_what_can_be_forged_is_named(corpus: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(corpus), "--cheat", "--json"])
    assert done.exit_code == Exit.TASKS
    found = json.loads(done.stdout)
    assert sorted(found["sound"]) == ["below", "compared", "made", "program"]
    named = {Path(problem["path"]).parts[-3]: problem["problem"] for problem in found["problems"]}
    assert len(found["problems"]) == len(FORGEABLE) == len(named)
    for name, cheat in FORGEABLE.items():
        assert named[name] == f"gives a cheat reward 1: {cheat}"
    assert len(CHEATS) >= 5


def test_without_cheats_all_are_sound(corpus: Path) -> None:
    done = CliRunner().invoke(app, ["check", str(corpus)])
    assert (done.exit_code, done.stdout) == (0, "7 of 7 tasks are sound\n")


def test_a_task_that_asks_for_more_is_not_run_unless_that_is_ignored(tmp_path: Path) -> None:
    (write_task(tmp_path / "t") / "environment/Dockerfile").write_text("FROM scratch\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path), "--kind", "bubblewrap"])
    assert done.exit_code == Exit.TASKS
    assert "FROM scratch" in done.stdout
    assert '"dockerfile" to tasks.ignore' in done.stdout
    assert (why_no_images()[1] or 'set sandbox.kind = "auto"').lower() in done.stdout.lower()
    assert CliRunner().invoke(app, ["check", str(tmp_path), "--ignore", "dockerfile"]).exit_code == 0
    assert CliRunner().invoke(app, ["check", str(tmp_path), "--ignore", "docker"]).exit_code == Exit.CONFIG


def test_forgeable_tasks_can_be_refused_on_start(corpus: Path) -> None:
    async def start(refuse: bool) -> None:
        settings = HarborTasks(train="", evaluation="", refuse_forgeable=refuse)
        async with trial_pools(2) as pools:
            await require_unforgeable(settings, load_corpus(corpus), pools)

    asyncio.run(start(False))
    with pytest.raises(AriseError, match=r"in-process/tests/test\.sh: gives a cheat reward 1") as caught:
        asyncio.run(start(True))
    assert caught.value.exit_code is Exit.TASKS
