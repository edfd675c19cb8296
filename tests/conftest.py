"""What tests of several folders share."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.runs import call_afresh, settings
from tests.shared import once

# Before torch is imported: two workers whose OpenMP threads spin while they wait take twice the processor time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# A shell starts what runs in its background with Ctrl-C ignored, and processes under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an undisturbed run, what it printed, and the cache with its warm start; made once per session."""

    def make(folder: Path) -> None:
        done = call_afresh(folder / "cache", "train", "--run-dir", str(folder / "run"), *settings())
        assert done.returncode == 0, done.stderr
        (folder / "stdout").write_text(done.stdout, encoding="utf-8")

    return once(tmp_path_factory, "whole", make)
