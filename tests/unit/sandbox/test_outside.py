"""What ARISE covers from outside is what bwrap would cover, and bwrap does it where that cannot be done."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from arise.ports import SandboxLost
from arise.sandbox.launch import NotCovered, start
from arise.sandbox.layout import hidden_proc
from arise.sandbox.native_server import native_server
from arise.sandbox.pool import BubblewrapPool
from arise.types.sandbox import LOGS, TESTS

pytestmark = pytest.mark.skipif(native_server() is None, reason="no C compiler")
GUARDED = BubblewrapPool(1, None, (LOGS,), shown=(TESTS,), guard=(LOGS, TESTS))


async def said(pool: BubblewrapPool, late: bool, command: str) -> str:
    sandbox = await start(replace(pool.layout, late=late), pool.cgroups)
    try:
        return (await sandbox.run(command, 30)).output
    finally:
        await sandbox.close()


def mounts(table: str) -> list[tuple[str, ...]]:
    """Return where everything is mounted and how, without numbers that differ between two starts."""
    found = []
    for line in table.splitlines():
        own, _, rest = line.partition(" - ")
        _, _, _, root, point, options, *propagation = own.split()
        root = root if point != TESTS else ""
        found.append((point, root, options, *(word.split(":")[0] for word in propagation), *rest.split()))
    return sorted(found)


@pytest.mark.parametrize("pool", [BubblewrapPool(1), GUARDED], ids=["agent", "verifier"])
def test_both_ways_to_cover_proc_give_the_same_mounts(pool: BubblewrapPool) -> None:
    late, early = (asyncio.run(said(pool, way, "cat /proc/self/mountinfo")) for way in (True, False))
    assert mounts(late) == mounts(early)
    assert {str(path) for path in hidden_proc()} <= {point for point, *_ in mounts(late)}


def test_nothing_of_a_covered_entry_can_be_read_or_uncovered() -> None:
    paths = " ".join(str(path) for path in hidden_proc())
    tried = (
        f"for p in {paths}; do cat $p/* $p | wc -c; umount $p; chmod 777 $p; done 2>/dev/null; ls /proc/1 /proc/acpi"
    )
    for line in asyncio.run(said(BubblewrapPool(1), True, tried)).splitlines():
        assert line == "0" or "cannot" in line, line


def test_a_sandbox_that_could_not_be_covered_is_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = BubblewrapPool(1)
    unknown = replace(pool.layout, late=True)
    monkeypatch.setattr("arise.sandbox.layout.hidden_proc", lambda: [Path("/proc/no-such-entry")])
    with pytest.raises(NotCovered, match="covered"):
        asyncio.run(start(unknown, pool.cgroups))
    assert issubclass(NotCovered, SandboxLost)


def test_the_pool_lets_bwrap_cover_where_it_cannot_be_done_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arise.sandbox.outside._GET_PARENT", 0)

    async def opened() -> str:
        async with BubblewrapPool(1) as pool:
            assert not pool.layout.late
            assert "no cap on inotify" in "".join(pool.notes)
            sandbox = await pool.open()
            return (await sandbox.run("cat /proc/kallsyms /proc/1/environ", 30)).output

    assert asyncio.run(opened()).count("Permission denied") == 2
