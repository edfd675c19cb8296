"""F18, F19, F21, F22 through the command line: torn checkpoints, a full disk, a jumping clock, many starters."""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from arise.run.reader import RunReader
from tests.e2e.runs import arise, call, digest, environment, settings

STARTERS = 20


def test_a_run_passes_its_own_verification(copied: Path, cache: Path) -> None:
    done = call(cache, "verify", str(copied))
    assert done.returncode == 0, done.stdout
    assert "all 16 checks passed" in done.stdout


@pytest.mark.parametrize("name", ["manifest.json", "weights.safetensors"])
def test_a_torn_checkpoint_is_named_and_the_run_ends_as_if_it_were_whole(
    finished: tuple[Path, str], copied: Path, cache: Path, name: str
) -> None:
    run, torn = finished[0], copied
    with closing(sqlite3.connect(torn / "run.db")) as db:
        (checkpoint,) = db.execute("SELECT checkpoint FROM iterations ORDER BY k DESC LIMIT 1").fetchone()
    file = torn / checkpoint / name
    file.write_bytes(file.read_bytes()[:-5])
    done = call(cache, "resume", str(torn))
    assert done.returncode == 0, done.stderr
    assert f"{checkpoint}/{name} was changed or is torn" in done.stdout
    assert digest(torn) == digest(run)
    assert call(cache, "verify", str(torn)).returncode == 0


def test_a_full_disk_ends_the_run_with_5_and_a_resume_finishes_it(
    finished: tuple[Path, str], cache: Path, tmp_path: Path
) -> None:
    """A disk of 16 MiB, full when 1.5 MiB of the run are written; then there is room again."""
    run, _ = finished
    disk = tmp_path / "disk"
    disk.mkdir()
    script = tmp_path / "script.sh"
    train = shlex.join(arise("train", "--run-dir", f"{disk}/run", *settings()))
    resume, verify = (shlex.join(arise(word, f"{disk}/run")) for word in ("resume", "verify"))
    script.write_text(
        f"head -c 15200000 /dev/zero > {disk}/ballast\n{train}\necho train $?\nrm {disk}/ballast\n"
        f"{resume}\necho resume $?\n{verify}\necho verify $?\ncp -r {disk}/run {tmp_path}/kept\n"
    )
    small = ["bwrap", "--dev-bind", "/", "/", "--cap-add", "ALL", "--size", str(16 << 20), "--tmpfs", str(disk)]
    done = subprocess.run(
        [*small, "sh", str(script)], env=environment(cache), capture_output=True, text=True, timeout=240, check=False
    )
    assert "train 5" in done.stdout, done.stderr
    assert "No space left" in done.stderr or "is full" in done.stderr
    assert f"arise resume {disk}/run" in done.stderr
    assert "Traceback" not in done.stderr
    assert "resume 0" in done.stdout, done.stderr
    assert "verify 0" in done.stdout, done.stdout
    assert digest(tmp_path / "kept") == digest(run)


JUMPING = """
import itertools, time
real, calls = time.time, itertools.count()
def jumping():  # a day back at every call, a year ahead at every seventh: no three calls are in order
    n = next(calls)
    return real() - 86_400 * n + 31_536_000 * (n % 7 == 0)
time.time = jumping
from arise.cli.main import main
main()
"""


def test_a_jumping_clock_changes_nothing(finished: tuple[Path, str], cache: Path, tmp_path: Path) -> None:
    run, _ = finished
    jumped = tmp_path / "jumped"
    command = [sys.executable, "-c", JUMPING, "train", "--run-dir", str(jumped), *settings()]
    done = subprocess.run(command, env=environment(cache), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert digest(jumped) == digest(run)
    with RunReader.open(jumped) as reader:
        seconds = reader.query("SELECT value FROM vitals WHERE name LIKE 'seconds.%'")
        times = [iteration.at for iteration in reader.iterations()]
    assert seconds
    assert all(value >= 0.0 for (value,) in seconds)
    assert times != sorted(times), "the clock did jump"


def test_one_of_twenty_starters_gets_the_run_and_readers_continue(copied: Path, cache: Path, tmp_path: Path) -> None:
    held = copied
    gate = tmp_path / "gate"
    waits = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.005)\n"
        "from arise.cli.main import main\nmain()"
    )
    with FileLock(held / "run.lock"):
        (held / "owner.txt").write_text("host here, process 1, started now")
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", waits, "resume", str(held)],
                env=environment(cache),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(STARTERS - 1)
        ]
        gate.touch()
        reads = 0
        while any(starter.poll() is None for starter in starters):
            with RunReader.open(held) as reader:
                assert reader.committed() == 4
            reads += 1
            time.sleep(0.02)
        said = [starter.communicate()[1] for starter in starters]
    assert [starter.returncode for starter in starters] == [6] * (STARTERS - 1)
    assert all("is in use by host here, process 1, started now" in text for text in said)
    assert reads > 0


def test_a_second_process_is_turned_away_without_loading_anything_heavy(copied: Path) -> None:
    """The time of this is what F22 bounds; what takes it is imports, so that is what is checked."""
    held = copied
    code = (
        "import sys, time\nbegan = time.process_time()\nfrom arise.cli.main import main\n"
        f"sys.argv = ['arise', 'resume', {str(held)!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "spent = time.process_time() - began\n"
        "heavy = [name for name in ('torch', 'numpy', 'pydantic', 'typer', 'arise.run.store') if name in sys.modules]\n"
        "import json\nprint(json.dumps([code, heavy, spent]))"
    )
    with FileLock(held / "run.lock"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False
        )
    code_, heavy, seconds = json.loads(done.stdout)
    assert (code_, heavy) == (6, [])
    assert seconds < 2.0 / 19 * 2, "nineteen of these on two cores within two seconds"


def test_a_policy_that_diverges_ends_the_run_with_8(cache: Path, tmp_path: Path) -> None:
    done = call(
        cache, "train", "--run-dir", str(tmp_path / "run"), *settings(), "--set", "optimizer.learning_rate=1e18"
    )
    assert done.returncode == 8, done.stderr
    assert "error[numeric]" in done.stderr
    assert "learning_rate" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["smollm2-135m", "/etc", "no-such-folder"])
def test_a_model_that_is_not_there_is_named_before_anything_starts(tmp_path: Path, name: str) -> None:
    empty = tmp_path / "cache"
    chosen = ["--set", "model.kind=pretrained", "--set", f"model.name={name}", "--set", "model.demonstrations=4"]
    done = call(empty, "train", "--run-dir", str(tmp_path / "run"), *chosen)
    assert done.returncode == 2, done.stderr
    assert f"error[model]  {name}" in done.stderr
    assert "demonstrations" not in done.stdout
