"""put, get, env and further folders of a sandbox, whatever the agent made of the paths."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from arise.ports import SandboxLost, TreeRefused
from arise.rollouts.time_limit import WithinTime
from arise.sandbox import BubblewrapPool, BubblewrapSandbox
from arise.types import Place
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

Body = Callable[[BubblewrapSandbox], Awaitable[object]]


def inside(body: Body, place: Place | None = None) -> object:
    async def run() -> object:
        async with BubblewrapPool(1) as pool:
            box = await pool.open(place or Place())
            try:
                return await body(box)
            finally:
                await box.close()

    return asyncio.run(run())


def test_a_file_and_a_folder_there_and_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep/run.sh").write_text("echo made\n")
    (source / "deep/run.sh").chmod(0o755)

    async def body(box: BubblewrapSandbox) -> str:
        await box.put(source, "/app/given")
        await box.put(source / "deep/run.sh", "/tmp/tools/run.sh")
        done = await box.run("./given/deep/run.sh > out; /tmp/tools/run.sh >> out; cat out", 10)
        await box.end()
        assert await box.get("/app/out", tmp_path / "back/out") == ()
        assert await box.get("/app", tmp_path / "all") == ()
        return done.output

    assert inside(body) == "made\nmade\n"
    assert (tmp_path / "back/out").read_text() == "made\nmade\n"
    assert sorted(os.listdir(tmp_path / "all")) == ["given", "out"]
    assert os.access(tmp_path / "all/given/deep/run.sh", os.X_OK)


def test_get_keeps_the_modes_of_the_attempt(tmp_path: Path) -> None:
    async def body(box: BubblewrapSandbox) -> str:
        await box.run("mkdir -m 0777 shared; mkdir -m 0755 shared/in", 10)
        await box.get("/app/shared", tmp_path / "copy")
        return (await box.run("stat -c %a shared shared/in", 10)).output

    assert inside(body) == "777\n755\n"


def test_put_replaces_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_text("new")

    async def body(box: BubblewrapSandbox) -> str:
        await box.run("mkdir -p d; echo old > d/a; echo kept > d/b; ln -s /tmp/elsewhere link", 10)
        await box.put(tmp_path / "d", "/app/d")
        await box.put(tmp_path / "d/a", "/app/link")
        return (await box.run("cat d/a d/b link; ls /tmp", 10)).output

    assert inside(body) == "newkept\nnew"


@pytest.mark.parametrize("path", ["/app/link/x", "/app/fifo", "/app/link"])
def test_obstacles_that_the_agent_left_are_not_faults(path: str, tmp_path: Path) -> None:
    async def body(box: BubblewrapSandbox) -> None:
        await box.run("ln -s / link; mkfifo fifo", 10)
        with pytest.raises(TreeRefused):
            await box.get(path, tmp_path / "out")

    inside(body)
    assert not (tmp_path / "out").exists()


def test_put_does_not_follow_a_link_of_the_agent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    async def body(box: BubblewrapSandbox) -> str:
        await box.run("ln -s /tmp out", 10)
        with pytest.raises(TreeRefused):
            await box.put(tmp_path / "file", "/app/out/file")
        return (await box.run("ls /tmp", 10)).output

    assert inside(body) == ""


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    async def body(box: BubblewrapSandbox) -> None:
        with pytest.raises(FileNotFoundError):
            await box.get("/app/none", tmp_path / "out")
        with pytest.raises(FileNotFoundError, match="in none of the folders"):
            await box.get("/etc/passwd", tmp_path / "out")
        with pytest.raises(ValueError, match="without"):
            await box.get("/app/../etc/passwd", tmp_path / "out")
        with pytest.raises(SandboxLost):
            await box.put(tmp_path / "none", "/app/x")

    inside(body)


def test_links_out_are_left_out(tmp_path: Path) -> None:
    async def body(box: BubblewrapSandbox) -> tuple[str, ...]:
        await box.run("ln -s /etc/passwd stolen; echo 1 > kept", 10)
        return await box.get("/app", tmp_path / "all")

    assert inside(body) == ("stolen (a link to /etc/passwd)",)
    assert os.listdir(tmp_path / "all") == ["kept"]


def test_variables_of_the_place_and_of_one_command(tmp_path: Path) -> None:
    async def body(box: BubblewrapSandbox) -> str:
        one = await box.run("echo $A-$B", 10, {"B": "it's $HOME"})
        return one.output + (await box.run("echo $A-$B", 10)).output

    assert inside(body, Place(env={"A": "a"})) == "a-it's $HOME\na-\n"


def test_a_further_folder_can_be_read_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "solve.sh").write_text("echo solved\n")

    async def body(box: BubblewrapSandbox) -> str:
        await box.put(tmp_path, "/solution")
        return (await box.run("bash /solution/solve.sh; touch /solution/x 2>/dev/null || echo refused", 10)).output

    assert inside(body, Place(folders=("/solution",))) == "solved\nrefused\n"


def test_no_other_user_and_no_endpoint() -> None:
    async def body(box: BubblewrapSandbox) -> None:
        with pytest.raises(SandboxLost, match="no user 'root'"):
            await box.run("id", 10, user="root")
        with pytest.raises(SandboxLost, match="no network"):
            await box.reach("http://localhost:1/v1")

    inside(body)


@dataclass
class Foreign(WithinTime):
    """A sandbox that the verifier does not know from inside: its files travel by `get`."""


def test_files_of_any_sandbox_can_be_verified(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text('[ "$A$(cat answer)" = b42 ]; echo $((! $?)) > /logs/verifier/reward.txt\n')

    async def body() -> float | None:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1) as verifier:
            box = Foreign(await pool.open(), None)
            await box.run("echo 42 > answer", 10)
            result = await verifier.verify(box, bare_task(tmp_path, environment={"A": "b"}))
            await box.close()
            return result.reward

    assert asyncio.run(body()) == 1.0
