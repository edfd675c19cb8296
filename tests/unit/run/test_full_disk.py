"""F19 — the disk is full at each of the first 300 pages of a run: nothing corrupt, exit 5, and a resume finishes it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("margins", [25, pytest.param(300, marks=pytest.mark.slow)])
def test_a_full_disk_never_corrupts_a_run(tmp_path: Path, margins: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    small_disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(8 << 20), "--tmpfs", str(disk), "--chdir", str(ROOT)]
    script = [sys.executable, "-m", "tests.unit.run.full_disk", str(disk), str(margins)]
    done = subprocess.run([*small_disk, *script], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report == {"margins": margins, "stopped": margins, "corrupt": 0, "different": 0, "wrong exit": 0}
