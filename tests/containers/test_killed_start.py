"""`kill -9` at that moment of a start in which bubblewrap alone would leave a process asleep for good."""

from pathlib import Path

from tests.containers.test_lifecycle import dockerfile, mounts
from tests.killed_start import held_start, wait_for
from tests.leftovers import groups

OWNER = """
import asyncio, sys
from pathlib import Path
from arise.sandbox.overlay_pool import OverlayPool
from arise.types import Place

async def main():
    async with OverlayPool() as pool:
        await pool.open(Place(dockerfile=Path(sys.argv[1]), storage_mb=64))

asyncio.run(main())
"""


def test_nothing_of_an_overlay_is_left_although_no_other_run_starts(tmp_path: Path) -> None:
    with held_start(tmp_path, OWNER, str(dockerfile(tmp_path / "image"))) as owner:
        owner.kill()
        owner.wait()
        assert wait_for(owner.pid, there=False)
        assert mounts(f"arise-{owner.pid}-") == []
        assert groups(f"arise-{owner.pid}-") == []
