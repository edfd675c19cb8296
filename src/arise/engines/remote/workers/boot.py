"""Start a worker: `python -P boot.py areal`, in an environment where ARISE is not installed.

Only the package `arise` is made importable, by its path. Other packages in the same site-packages folder are not,
because they belong to another environment.
"""

import ctypes
import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3]
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Make `arise` importable, ask the kernel to end this process with its parent, run the worker."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the driver died before this worker began")
    spec = importlib.util.spec_from_file_location(
        "arise", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["arise"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["arise"])
    worker = importlib.import_module(f"arise.engines.remote.workers.{sys.argv[1]}_worker")
    importlib.import_module("arise.engines.remote.workers.loop").serve(worker.open_backend)


if __name__ == "__main__":
    main()
