"""Mutation score of src/arise/method: `python -m benchmarks.mutation`. About ten minutes on two cores.

mutmut changes one thing at a time in a copy of the code (folder `mutants/`) and runs the golden and unit tests that
reach it; [tool.mutmut] in pyproject.toml says which.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
WANTED = 0.95


def mutmut(*arguments: str) -> str:
    """The output of one mutmut command, run at the repository's root with single-threaded arithmetic."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": "."}
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"mutmut {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def survivors() -> Counter[str]:
    """How many mutants survived in each function."""
    found: Counter[str] = Counter()
    for line in mutmut("results").splitlines():
        name, _, status = line.strip().rpartition(": ")
        if status in ("survived", "no tests"):
            found[name.rpartition("__mutmut_")[0].replace("x_", "", 1)] += 1
    return found


def main() -> None:
    """Print the score and where mutants survived; fail below the wanted score."""
    shutil.rmtree(ROOT / "mutants", ignore_errors=True)
    begin = perf_counter()
    mutmut("run", "--max-children", "2")
    minutes = (perf_counter() - begin) / 60
    mutmut("export-cicd-stats")
    stats = json.loads((ROOT / "mutants" / "mutmut-cicd-stats.json").read_text(encoding="utf-8"))
    for name, count in survivors().most_common():
        print(f"{count:4d} survived in {name}")
    detected = stats["killed"] + stats["timeout"] + stats["segfault"]
    score = detected / stats["total"]
    print(f"\n{detected} of {stats['total']} mutants detected, score {score:.3f} (wanted {WANTED}), {minutes:.1f} min")
    print({name: count for name, count in stats.items() if count})
    sys.exit(score < WANTED)


if __name__ == "__main__":
    main()
