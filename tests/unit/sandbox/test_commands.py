"""One command after another in one sandbox, whatever they print or do to it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from arise.ports import SandboxLost
from arise.sandbox import BubblewrapPool, BubblewrapSandbox, bubblewrap
from arise.types import CommandResult, Place


def run(*commands: str, timeout: float = 10) -> list[CommandResult]:
    async def body() -> list[CommandResult]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            return [await box.run(command, timeout) for command in commands]

    return asyncio.run(body())


def test_result_has_output_of_both_streams_and_the_exit_code() -> None:
    assert run("echo out; echo err >&2; exit 3") == [CommandResult("out\nerr\n", 3)]


def test_files_last_and_shell_state_does_not() -> None:
    results = run("cd /tmp; export X=1; echo kept > /app/f", "pwd; echo [$X]; cat f")
    assert results[1].output == "/app\n[]\nkept\n"


def test_input_is_empty() -> None:
    assert run("cat; read x; echo $?")[0].output == "1\n"


@pytest.mark.parametrize(
    "text", ["\\x00\\x01\\x00\\x00R", "\\xff\\xfe", "\\x1b[2J", "R" * 13, "\\r\\n\\r\\n", '{"exit": 0}']
)
def test_no_output_can_be_taken_for_an_answer(text: str) -> None:
    first, second = run(f"printf '{text}'; exit 7", "echo next")
    assert (first.exit_code, first.ended) == (7, "exit")
    assert second == CommandResult("next\n", 0)


def test_control_descriptor_is_not_inherited() -> None:
    assert run("ls /proc/self/fd | wc -l")[0].output == "4\n"  # three, and that of the listing


def test_the_server_cannot_be_signalled_and_killing_everything_is_a_command_like_others() -> None:
    killed, after = run("kill -9 1; kill -STOP 1; kill -9 -1; kill -9 $$", "echo alive")
    assert (killed.exit_code, killed.ended) == (137, "exit")
    assert after.output == "alive\n"


def test_no_signal_and_no_limit_set_from_inside_reaches_the_server() -> None:
    limits = "--nofile=3 --as=1000 --cpu=0 --fsize=0 --nproc=0 --stack=0"
    _, limited, after = run(
        "for n in $(seq 64); do kill -$n 1; done; sleep 0.2",
        f"prlimit --pid 1 {limits}; ulimit -n 50; ulimit -n",
        "echo alive",
    )
    assert "Operation not permitted" in limited.output
    assert limited.output.endswith("50\n"), "its own limits a command may lower"
    assert after.output == "alive\n"


def test_a_server_that_cannot_answer_for_its_processes_is_their_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "GRACE_SECONDS", 0.2)

    async def body() -> tuple[str, str, bool]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            await box.run("echo kept > file", 5)
            signal.pidfd_send_signal(box.pidfds[0], signal.SIGSTOP)
            first, second = await box.run("sleep 5", 0.1), await box.run("echo", 5)
            return first.ended, second.ended, (box.folder(box.workdir) / "file").exists()

    assert asyncio.run(body()) == ("timeout", "timeout", True)


def test_background_processes_last_until_the_sandbox_ends() -> None:
    results = run("sleep 50 & echo $! > pid", "kill -0 $(cat pid) && echo there")
    assert results[1].output == "there\n"


def test_a_long_text_goes_in_and_out_whole() -> None:
    text = "é" * 50_000
    assert run(f"echo {text}")[0].output == text + "\n"


@pytest.mark.parametrize("command", ["echo \0", "echo " + "x" * 200_000])
def test_a_command_that_cannot_be_passed_is_answered_not_raised(command: str) -> None:
    refused, after = run(command, "echo next")
    assert (refused.exit_code, refused.ended) == (126, "exit")
    assert after.output == "next\n"


def test_orphans_are_reaped() -> None:
    results = run("for i in $(seq 20); do (true & ) ; done; sleep 0.2", "true", "ps -e | grep -c defunct")
    assert results[2].output == "0\n"


def lose(how: str) -> type[BaseException] | None:
    async def body() -> type[BaseException] | None:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            command = asyncio.create_task(box.run("sleep 60", 60))
            await asyncio.sleep(0.1)
            if how == "server dies":
                signal.pidfd_send_signal(box.pidfds[0], signal.SIGKILL)
            elif how == "bwrap dies":
                box.process.kill()
            else:
                await box.end()
            try:
                await command
            except SandboxLost as fault:
                with pytest.raises(SandboxLost):
                    await box.run("echo", 1)
                return type(fault)
            return None

    return asyncio.run(body())


@pytest.mark.parametrize("how", ["server dies", "bwrap dies", "ended meanwhile"])
def test_a_lost_sandbox_is_a_fault_and_not_a_result(how: str) -> None:
    assert lose(how) is SandboxLost


def test_a_cancelled_command_ends_the_sandbox() -> None:
    async def body() -> BubblewrapSandbox:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await box.run("sleep 60", 60)
            with pytest.raises(SandboxLost):
                await box.run("echo late answer", 5)
            return box

    assert not asyncio.run(body()).alive


def test_files_outlive_the_processes(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("in")

    async def body() -> list[str]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open(Place(tmp_path))
            await box.run("cat given > made; sleep 60 &", 5)
            await box.end()
            await box.end()
            return [*sorted(os.listdir(box.folder(box.workdir))), (box.folder(box.workdir) / "made").read_text()]

    assert asyncio.run(body()) == ["given", "made", "in"]


def test_both_streams_come_in_the_order_in_which_they_were_written() -> None:
    both = "".join(f"out {n}\nerr {n}\n" for n in range(200))
    command = "for n in $(seq 0 199); do echo out $n; echo err $n >&2; done"
    assert [result.output for result in run(*[command] * 3)] == [both] * 3


@pytest.mark.parametrize("command", ["echo late > >(cat)", "echo late | tee >(cat >&2)", "(sleep 0.05; echo late) &"])
def test_what_the_last_processes_of_a_command_print_belongs_to_it(command: str) -> None:
    """The shell does not wait for them; without a moment's grace the scheduler would decide what an agent reads."""
    expected = "late\n" * (2 if "tee" in command else 1)
    assert {result.output for result in run(*[command] * 20)} == {expected}


def test_a_server_in_the_background_does_not_hold_up_its_command() -> None:
    started, still = run("sleep 30 & echo started", "pgrep -c sleep")
    assert started.output == "started\n"
    assert still.output == "1\n"
