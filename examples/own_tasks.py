"""Write a folder of tasks in Harbor's format, load it as a run would, and check every task in a sandbox.

A sound task's own solution earns 1 and doing nothing earns 0. Needs bubblewrap.
Run: python examples/own_tasks.py FOLDER
"""

import asyncio
import sys
from pathlib import Path

from arise.compose.sandboxes import trial_pools
from arise.rollouts.oracle import check_task
from arise.tasks import load_corpus

TASK = """\
schema_version = "1.0"
[task]
name = "sums/{name}"
[metadata]
task_types = ["tabular-aggregation-and-reporting"]
[verifier]
timeout_sec = 30.0
"""
TEST = """\
#!/bin/bash
reward=0
[ "$(cat total.txt 2>/dev/null)" = "{total}" ] && reward=1
echo $reward > /logs/verifier/reward.txt
"""


def write_task(folder: Path, name: str, numbers: list[int]) -> None:
    """Write one task directory."""
    files = {
        "task.toml": TASK.format(name=name),
        "instruction.md": "Add up all numbers in numbers.txt and write the sum to total.txt.\n",
        "environment/numbers.txt": "".join(f"{number}\n" for number in numbers),  # what the agent finds
        "tests/test.sh": TEST.format(total=sum(numbers)),  # the agent never sees this
        "solution/solve.sh": "awk '{ s += $1 } END { print s }' numbers.txt > total.txt\n",
    }
    for path, text in files.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(text)


async def check(folder: Path) -> int:
    """Print the problems of every task below a folder; return how many there are."""
    problems = 0
    async with trial_pools(2) as pools:
        for task in load_corpus(folder):
            found = await check_task(task, pools)
            problems += len(found)
            print(task.task.id, "sound" if not found else "; ".join(map(str, found)))
    return problems


if __name__ == "__main__":
    for name, numbers in {"small": [1, 2, 3], "large": [10, 200, 3000]}.items():
        write_task(Path(sys.argv[1]), name, numbers)
    sys.exit(asyncio.run(check(Path(sys.argv[1]))))
