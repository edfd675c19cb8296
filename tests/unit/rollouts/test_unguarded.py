"""A kernel that does not tell who writes: said on start, refusable, and whatever is doubtful counts as 0."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

import arise.sandbox.layout as layout
from arise.compose.sandboxes import open_sandboxes
from arise.config import Config
from arise.errors import AriseError
from arise.rollouts.verifier import VerifierResult
from arise.sandbox import BubblewrapPool
from arise.sandbox.seccomp import guard_settings
from tests.task_folders import bare_task
from tests.verifiers import bubblewrap_verifier

OUT = "/logs/verifier"
NOTIFY = (0x7FC00000).to_bytes(4, "little").hex()
REFUSE = (0x00050001).to_bytes(4, "little").hex()


@pytest.fixture(autouse=True)
def _no_facility(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without user notification: the filter is refused, as an unknown flag would be."""

    def settings(machine: str) -> Mapping[str, object] | None:
        found = guard_settings(machine)
        return found and found | {"notify": "00" * 8}

    monkeypatch.setattr(layout, "guard_settings", settings)


def verify(test: str, tmp_path: Path) -> tuple[VerifierResult, tuple[str, ...]]:
    (tmp_path / "test.sh").write_text(test)

    async def body() -> tuple[VerifierResult, tuple[str, ...]]:
        async with BubblewrapPool(1) as pool, bubblewrap_verifier(1) as verifier:
            return await verifier.verify(await pool.open(), bare_task(tmp_path)), verifier.notes

    return asyncio.run(body())


@pytest.mark.parametrize(
    ("test", "reward", "reason"),
    [
        (f"echo 1 > {OUT}/reward.txt", 1.0, ""),
        (f"echo '{{\"reward\": 0.5}}' > {OUT}/reward.json", 0.5, ""),
        (f"echo 1 > {OUT}/reward.txt; echo '{{\"reward\": 1}}' > {OUT}/reward.json", 1.0, ""),
        (f"echo 0 > {OUT}/reward.txt; echo '{{\"reward\": 1}}' > {OUT}/reward.json", 0.0, "reward.json says 1"),
        (f"echo 1 > {OUT}/reward.txt; (setsid sleep 60 >/dev/null 2>&1 &)", 0.0, "left processes running"),
        (f"echo 1 > {OUT}/reward.txt; kill -9 $$", 0.0, "signal 9"),
        ("true", 0.0, "neither"),
    ],
)
def test_what_is_doubtful_counts_as_0(test: str, reward: float, reason: str, tmp_path: Path) -> None:
    result, notes = verify(test, tmp_path)
    assert (result.reward, result.fault) == (reward, "")
    assert reason in result.reason
    assert "can write the reward themselves" in notes[-1]
    assert "Linux 5.14 or later" in notes[-1]


def test_it_is_reported_on_start_and_can_be_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:

    async def start(config: Config) -> None:
        async with open_sandboxes(config, tmp_path):
            pass

    asyncio.run(start(Config.model_validate({"train": {"tasks_per_iteration": 1, "group_size": 2}})))
    assert any("can write the reward themselves" in line for line in caplog.messages)
    with pytest.raises(AriseError, match="can write the reward themselves"):
        asyncio.run(start(Config.model_validate({"sandbox": {"require_limits": True}})))
