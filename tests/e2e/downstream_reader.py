"""A downstream script that reads a run with the public API only."""

import sys
from pathlib import Path

import arise

with arise.RunReader.open(Path(sys.argv[1])) as run:
    print("iterations", len(run.iterations()))
    for pair in run.pairs():
        print("rubric", pair.rubric.id, pair.rubric.criteria_text)
    print("draws", sorted({path for _, path, _ in run.paths()}))
    print("verdicts", sum(count.passes + count.fails for count in run.verdict_counts()))
