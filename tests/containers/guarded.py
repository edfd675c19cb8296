"""Run a command until the process that started this one ends or asks for it, then remove a folder.

Call: `python guarded.py PARENT FOLDER COMMAND...`. A killed process cannot clean up after itself.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
END_SECONDS = 60.0


def main(parent: int, folder: str, line: list[str]) -> None:
    """Run `line`; end it with SIGTERM and remove `folder` at the end of `parent` or at SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == parent:  # otherwise it ended before the line above
            _run(line)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(line: list[str]) -> None:
    process = subprocess.Popen(line, start_new_session=True)
    try:
        process.wait()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        process.terminate()
        try:
            process.wait(END_SECONDS)
        finally:
            process.kill()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
