"""Every program in examples/ runs as a user would run it, is short, and prints what its guide says."""

import re
import subprocess
import sys
from pathlib import Path

from tests.synthetic_runs import write_run

EXAMPLES = Path(__file__).parents[2] / "examples"
LONGEST = 60


AS_MAIN = (
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__');"
    "assert 'torch' not in sys.modules, 'an example needs no torch'"
)


def run(name: str, *arguments: object) -> str:
    """Run an example as a program; it must not import torch."""
    done = subprocess.run(
        [sys.executable, "-c", AS_MAIN, str(EXAMPLES / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_are_five_and_each_is_tested() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    tested = set(re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text(encoding="utf-8")))
    assert len(names) == 5
    assert names == tested


def test_every_example_is_short() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_rubrics_teach_a_foreign_trainer_where_the_outcome_alone_does_not() -> None:
    outcome, rubrics = run("foreign_trainer.py").splitlines()
    ends = [int(line.rpartition(" ")[2].rstrip("%")) for line in (outcome, rubrics)]
    assert ends[0] < 10
    assert ends[1] > 90


def test_the_own_sampler_prefers_tasks_on_the_frontier() -> None:
    counts = {name: int(count) for name, count in re.findall(r"'([\w-]+)': (\d+)", run("own_sampler.py"))}
    assert counts["half"] > 800
    assert sum(counts.values()) == 1000


def test_the_own_judge_gives_verdicts_and_says_why_one_is_absent() -> None:
    passed, failed, untouched = run("own_judge.py").splitlines()
    assert "'r001': 'pass'" in passed
    assert "'r001': 'fail'" in failed
    assert "'r001': 'not_applicable'" in untouched
    assert "has no rule for backup" in passed


def test_the_own_tasks_are_sound_in_a_sandbox(tmp_path: Path) -> None:
    assert run("own_tasks.py", tmp_path / "tasks").split("\n") == ["sums/large sound", "sums/small sound", ""]


def test_a_run_is_read_offline(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", seed=0, success=lambda *_: True, events=[(2, "r1", "born")])
    text = run("read_run.py", folder)
    assert "iteration   6  pass rate  50.0%" in text
    assert "held out, after: 12 of 12 attempts pass" in text
    assert "born after iteration 2" in text
    assert "infrastructure faults: 0" in text


def test_the_own_sampler_and_judge_can_be_named_in_a_configuration() -> None:
    changes = ["sampler.kind=import", "sampler.path=own_sampler:Frontier", "judge.kind=import"]
    changes += ["judge.path=own_judge:CommandJudge", "pool.evolves=false"]
    words = ["config", *(word for change in changes for word in ("--set", change))]
    done = subprocess.run(
        [sys.executable, "-m", "arise", *words], capture_output=True, text=True, check=False, timeout=60, cwd=EXAMPLES
    )
    assert done.returncode == 0, done.stderr
    assert 'path = "own_sampler:Frontier"' in done.stdout
