"""A run on a disk that is too small by a little more each time; run inside a sandbox that has such a disk.

For every margin: write until the disk is full, look at what is there, make room, continue, compare. Prints JSON.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from arise.errors import AriseError, Exit
from arise.run.verify import DIGESTS, verify
from tests.stored_runs import content_of, write_run

PAGE = 4096
ITERATIONS = 8
TEXT = 8000
RANGE = 300
"""Margins are spread over so many pages: from a disk that cannot hold an empty database to one that nearly suffices."""


def main(disk: Path, margins: int) -> None:
    write_run(disk / "whole", ITERATIONS, TEXT)
    expected = content_of(disk / "whole")
    shutil.rmtree(disk / "whole")
    report = {"margins": margins, "stopped": 0, "corrupt": 0, "different": 0, "wrong exit": 0}
    for number in range(margins):
        run, ballast = disk / "run", disk / "ballast"
        run.mkdir()
        free, margin = os.statvfs(disk), 1 + number * (RANGE // margins)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, (free.f_bavail - margin) * free.f_frsize))
        try:
            write_run(run, ITERATIONS, TEXT)
        except AriseError as error:
            report["stopped"] += 1
            expected_advice = "arise resume" if (run / "config.toml").exists() else "no run was started"
            report["wrong exit"] += error.exit_code is not Exit.STORAGE or expected_advice not in str(error)
        ballast.unlink()
        if (run / "run.db").exists() and (run / "config.toml").exists():
            report["corrupt"] += any(check.name in DIGESTS and not check.passed for check in verify(run))
        write_run(run, ITERATIONS, TEXT)
        report["different"] += content_of(run) != expected
        shutil.rmtree(run)
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
