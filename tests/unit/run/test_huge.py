"""F23 — a trajectory of 100 MB, 20,000 turns and a line of 1 MB: any page of it opens quickly and in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arise.run.chunks import write_chunk
from arise.types import Observation, Rollout, StopReason, Trajectory, Turn

TURNS = 20_000
OPEN = """
import json, pathlib, resource, sys, time
from arise.run.chunks import ChunkPlace, StoredRollout
place = ChunkPlace(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.process_time()
stored = StoredRollout(pathlib.Path(sys.argv[1]), place)
turns = stored.turns(9_990, 40)
seconds = time.process_time() - began
rise = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
longest = max(len(turn.observations[0].text) for turn in turns)
print(json.dumps([stored.turn_count, len(turns), turns[10].text, longest, seconds, rise / 1024]))
"""


@pytest.mark.slow
def test_a_page_of_a_huge_trajectory_opens_alone(tmp_path: Path) -> None:
    turns = tuple(
        Turn(f"turn {n}", (), (Observation(("x" if n != 10_005 else "y" * 200) * 5_000),)) for n in range(TURNS)
    )
    rollout = Rollout(Trajectory("k0/t/0", "t", turns, StopReason.FINISHED), 1.0, True)
    (place,) = write_chunk(tmp_path, "k00000.zst", [rollout])
    arguments = [str(tmp_path), place.chunk, str(place.start), str(place.length)]
    done = subprocess.run(
        [sys.executable, "-c", OPEN, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    *found, seconds, mib = json.loads(done.stdout)
    assert found == [TURNS, 40, "turn 10000", 1_000_000]
    assert seconds < 1.5
    assert mib < 150
