"""A verifier's reward: what test.sh says, 0 with its reason where an attempt can be to blame, none where it cannot."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from arise.rollouts.ctrf import read_report
from arise.rollouts.reward import (
    RewardError,
    choose_reward,
    final_reward,
    parse_json_reward,
    parse_text_reward,
)
from arise.rollouts.verifier import VerifierResult
from arise.sandbox import MIB, BubblewrapPool, BubblewrapVerifierPool, Limits
from arise.types import RewardFile
from tests.leftovers import SLEEP, processes_with
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

OUT = "/logs/verifier"


def verify(test: str, tmp_path: Path, agent: str = "true", timeout: float = 10, **environment: str) -> VerifierResult:
    (tmp_path / "test.sh").write_text(test)
    limits = Limits(memory_bytes=256 * MIB, disk_bytes=32 * MIB, tmp_bytes=8 * MIB)

    async def body() -> VerifierResult:
        async with BubblewrapPool(1, limits) as pool, bubblewrap_verifier(1, limits) as verifier:
            box = await pool.open()
            await box.run(agent, 10)
            return await verifier.verify(box, bare_task(tmp_path, timeout, environment))

    return asyncio.run(body())


@pytest.mark.parametrize(
    ("test", "reward", "details"),
    [
        (f"echo 1 > {OUT}/reward.txt", 1.0, {"reward": 1.0}),
        (f"echo ' 0.25 ' > {OUT}/reward.txt; exit 3", 0.25, {"reward": 0.25}),
        (
            f'echo 0 > {OUT}/reward.txt; echo \'{{"reward": 1, "x": 0.5}}\' > {OUT}/reward.json',
            1.0,
            {"reward": 1, "x": 0.5},
        ),
        (f"echo '{{\"score\": 0.75}}' > {OUT}/reward.json", 0.75, {"score": 0.75}),
    ],
)
def test_reward_is_read(test: str, reward: float, details: dict[str, float], tmp_path: Path) -> None:
    result = verify(test, tmp_path)
    assert (result.reward, result.success, result.fault) == (reward, reward >= 1, "")
    assert result.details == details


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("true", "neither reward.json nor reward.txt"),
        (f": > {OUT}/reward.txt", "empty"),
        (f"echo nan > {OUT}/reward.txt", "not one finite number"),
        (f"echo inf > {OUT}/reward.txt", "not one finite number"),
        (f"echo 1 0 > {OUT}/reward.txt", "not one finite number"),
        (f"echo pass > {OUT}/reward.txt", "not one finite number"),
        (f"echo 1 > {OUT}/reward.txt; : > {OUT}/reward.json", "not JSON"),
        (f"ln -s /etc/passwd {OUT}/reward.txt", "neither"),
        (f"mkfifo {OUT}/reward.txt", "neither"),
        (f"head -c 1M /dev/zero > {OUT}/reward.txt", "more than 65536 bytes"),
        (f"echo -1 > {OUT}/reward.txt", "outside 0 to 1"),
        (f"echo 1e308 > {OUT}/reward.txt", "outside 0 to 1"),
        (
            f"echo '{{\"reward\": 1}}' > {OUT}/reward.json; echo 0 > {OUT}/reward.txt",
            "reward.txt, written after it, says 0",
        ),
        (f"echo 1 > {OUT}/reward.txt; rm {OUT}/reward.txt", "neither"),
        (f"echo 1 > {OUT}/reward.txt; kill -9 $$", "signal 9"),
        (f"echo 1 > {OUT}/reward.txt; sleep 60", "timeout"),
        (f"echo 1 > {OUT}/reward.txt; yes", "output"),
        ("python3 -c 'x = bytearray(10**9)'; true", "neither"),
        ("exec python3 -c 'x = bytearray(10**9)'", "signal 9"),
    ],
)
def test_without_a_valid_reward_an_attempt_gets_0_and_the_reason(test: str, reason: str, tmp_path: Path) -> None:
    result = verify(f"echo said\n{test}", tmp_path, timeout=1 if reason == "timeout" else 30)
    assert (result.reward, result.success, result.fault) == (0.0, False, "")
    assert reason in result.reason
    assert result.stdout.startswith("said\n")


@pytest.mark.parametrize(
    "text",
    [b"", b"[1]", b"{}", b'{"reward": true}', b'{"reward": "1"}', b'{"reward": NaN}', b'{"a": {"b": 1}}', b"[" * 9999],
)
def test_bad_json_rewards(text: bytes) -> None:
    with pytest.raises(RewardError):
        parse_json_reward(text)


def test_a_range_of_the_tasks_own() -> None:
    written = [RewardFile("reward.txt", b"-3")]
    assert final_reward(written, (-5.0, 5.0)) == (-3.0, {"reward": -3.0})
    with pytest.raises(RewardError, match="outside -1 to 1"):
        final_reward(written, (-1.0, 1.0))


def test_two_files_that_agree_or_of_which_reward_json_came_last() -> None:
    text, numbers = (
        RewardFile("reward.txt", b"1", order=1),
        RewardFile("reward.json", b'{"reward": 1, "x": 2}', order=2),
    )
    assert final_reward([text, numbers]) == (1.0, {"reward": 1.0, "x": 2.0})
    assert final_reward([RewardFile("reward.txt", b"1.0", order=3), numbers])[0] == 1.0
    assert final_reward([RewardFile("reward.txt", b"0", order=1), numbers])[0] == 1.0


def test_choice_among_several_numbers() -> None:
    assert choose_reward({"reward": 0.5, "other": 1.0}) == 0.5
    with pytest.raises(RewardError, match="a, b"):
        choose_reward({"a": 1.0, "b": 0.0})
    assert parse_text_reward(b"1e-3\n") == {"reward": 0.001}


def test_agent_processes_are_dead_before_the_tests_run(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(f"echo 1 > {OUT}/reward.txt")

    async def body() -> list[int]:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1) as verifier:
            box = await pool.open()
            await box.run(f"(setsid nohup {SLEEP} >/dev/null 2>&1 &) ; sleep 0.5", 5)
            assert len(processes_with(SLEEP)) == 1
            await verifier.verify(box, bare_task(tmp_path))
            return processes_with(SLEEP)

    assert asyncio.run(body()) == []


RUNS_THE_PROGRAM = f"bash /app/program\n[ -s answer ]\necho $((! $?)) > {OUT}/reward.txt\n"


@pytest.mark.parametrize(
    "program",
    [
        f"echo 'echo 1 > {OUT}/reward.txt' >> /tests/test.sh",
        f"chmod 777 /tests; rm -f /tests/test.sh; echo 'echo 1 > {OUT}/reward.txt' > /tests/test.sh",
        f"echo 1 > {OUT}/reward.txt",
    ],
)
def test_a_program_run_by_the_tests_cannot_change_them(program: str, tmp_path: Path) -> None:
    result = verify(RUNS_THE_PROGRAM, tmp_path, agent=f"cat > program <<'END'\n{program}\nEND")
    assert (result.reward, result.fault) == (0.0, "")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (f"(setsid sh -c 'while :; do echo 1 > {OUT}/reward.txt; done' >/dev/null 2>&1 &)", ""),
        (f"echo 1 > {OUT}/reward.txt; kill -9 $PPID", "signal 9"),
    ],
)
def test_a_program_that_outlasts_or_ends_the_tests_earns_nothing(program: str, reason: str, tmp_path: Path) -> None:
    result = verify(RUNS_THE_PROGRAM, tmp_path, agent=f"cat > program <<'END'\n{program}\nEND")
    assert (result.reward, result.fault) == (0.0, "")
    assert reason in result.reason


def test_a_pipe_that_ends_just_after_the_tests_is_no_fault(tmp_path: Path) -> None:
    result = verify(f"exec > >(tee {OUT}/test-stdout.txt) 2>&1\necho said\necho 1 > {OUT}/reward.txt", tmp_path)
    assert (result.reward, result.stdout) == (1.0, "said\n")


def test_environment_of_the_task_reaches_test_sh_and_may_change_the_defaults(tmp_path: Path) -> None:
    test = f'echo "$A|$PYTHONSAFEPATH|$PYTHONNOUSERSITE"; echo 1 > {OUT}/reward.txt'
    assert verify(test, tmp_path, A="it's $HOME", PYTHONSAFEPATH="").stdout == "it's $HOME||1\n"


def test_what_was_left_out_is_reported(tmp_path: Path) -> None:
    result = verify(f"ls; echo 0 > {OUT}/reward.txt", tmp_path, agent="ln -s /tests/x answer; echo > kept")
    assert result.stdout == "[not shown to test.sh: answer (a link to /tests/x)]\nkept\n"


def test_an_attempt_that_ran_out_of_memory_is_still_judged(tmp_path: Path) -> None:
    result = verify(f"cp /app/score {OUT}/reward.txt", tmp_path, "echo 0 > score; python3 -c 'x = bytearray(10**9)'")
    assert (result.reward, result.fault) == (0.0, "")


def test_a_lost_verifier_sandbox_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text("sleep 30")

    async def body() -> VerifierResult:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1) as verifier:
            box = await pool.open()
            verification = asyncio.create_task(verifier.verify(box, bare_task(tmp_path, 30)))
            await asyncio.sleep(0.3)
            tests = verifier.pool
            assert isinstance(tests, BubblewrapVerifierPool)
            for sandbox in tuple(tests.pool._open):
                signal.pidfd_send_signal(sandbox.pidfds[0], signal.SIGKILL)
            return await verification

    result = asyncio.run(body())
    assert (result.reward, result.success) == (None, None)
    assert result.fault.startswith("sandbox: ")


def test_missing_tests_are_a_fault(tmp_path: Path) -> None:
    async def body() -> VerifierResult:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1) as verifier:
            return await verifier.verify(await pool.open(), bare_task(tmp_path / "absent"))

    assert "absent" in asyncio.run(body()).fault


def test_verification_is_quick(tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text(f"echo 1 > {OUT}/reward.txt")

    async def body() -> float:
        async with BubblewrapPool(4) as pool, bubblewrap_verifier(4) as verifier:
            taken = []
            for _ in range(5):
                box = await pool.open()
                await asyncio.sleep(0.1)  # until the pools are full again
                started = time.perf_counter()
                await verifier.verify(box, bare_task(tmp_path))
                taken.append(time.perf_counter() - started)
            return min(taken)

    assert asyncio.run(body()) < 0.2  # a tenth of it on an idle machine


CTRF = (
    '{"results": {"summary": {"tests": 3}, "tests": [{"name": "test_a", "status": "passed"}, '
    '{"name": "test_b", "status": "failed"}, {"name": "test_c", "status": "skipped"}]}}'
)


def test_a_test_report_is_kept_as_evidence_next_to_the_reward(tmp_path: Path) -> None:
    result = verify(f"echo ran; echo '{CTRF}' > {OUT}/ctrf.json; echo 0.5 > {OUT}/reward.txt", tmp_path)
    assert (result.reward, result.details) == (0.5, {"tests": 3.0, "tests passed": 1.0, "reward": 0.5})
    report = "[ctrf.json: 1 of 3 tests passed; not passed: test_b (failed), test_c (skipped)]"
    assert result.stdout.splitlines() == ["ran", report]


def test_a_test_report_alone_is_no_reward(tmp_path: Path) -> None:
    result = verify(f"echo '{CTRF}' | sed s/failed/passed/ > {OUT}/ctrf.json", tmp_path)
    assert result.reward == 0.0
    assert "ctrf.json alone is no reward" in result.reason


@pytest.mark.parametrize("text", ["", "[]", "{", '{"results": {"tests": [{"name": 1}]}}', '{"results": {"tests": []}}'])
def test_a_malformed_report_is_ignored(text: str) -> None:
    assert read_report(text.encode()) is None
