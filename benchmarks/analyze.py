"""Speed and memory of `arise analyze` offline: `python -m benchmarks.analyze --attempts 2000 --turns 50`.

Writes attempts of OpenAI's shape as one JSON Lines file, analyses them in a process of its own, prints one JSON line.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COMMANDS = (
    "ls -la src", "cat src/module_{n}.py", "grep -rn 'def run_{n}' src", "sed -n '1,80p' src/module_{n}.py",
    "python -m pytest tests/test_{n}.py -q", "sed -i 's/a{n}/b{n}/' src/module_{n}.py", "git diff",
    "python - <<'EOF'\nprint(open('data_{n}.csv').read()[:100])\nEOF", "wc -l data_{n}.csv",
    "sort data_{n}.csv > out_{n}.csv",
)  # fmt: skip
CHILD = """
import resource, sys, time
from pathlib import Path
from arise.compose.analyze import analyze
start = time.perf_counter()
found = analyze([Path(sys.argv[1])])
used = resource.getrusage(resource.RUSAGE_SELF)
seconds = time.perf_counter() - start
print(len(found.attempts), len(found.gaps), seconds, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)
"""


def attempt(rng: random.Random, number: int, turns: int) -> dict[str, Any]:
    """One conversation of shell commands with about a kilobyte of output per turn."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Fix the bug in src/module_{number % 50}.py and write the report to report.md."}
    ]
    for turn in range(turns):
        command = rng.choice(COMMANDS).format(n=rng.randrange(40))
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        output = "\n".join(f"line {rng.randrange(10**6)} of some output of a program" for _ in range(20))
        messages += [
            {"role": "assistant", "content": "Next.", "tool_calls": [{"id": f"c{turn}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": output if rng.random() > 0.1 else "error: failed"},
        ]
    messages.append({"role": "assistant", "content": "Done, all tests pass."})
    return {"task_id": f"task-{number % 200}", "reward": float(rng.random() < 0.4), "messages": messages}


def write(path: Path, attempts: int, turns: int, seed: int = 0) -> None:
    """A file of attempts; the same seed gives the same bytes."""
    rng = random.Random(seed)  # noqa: S311 - synthetic data
    with path.open("w") as out:
        for number in range(attempts):
            out.write(json.dumps(attempt(rng, number, turns)) + "\n")


def measure(path: Path) -> dict[str, float]:
    """Seconds, processor seconds (imports included) and peak megabytes of one analysis in a fresh process."""
    done = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
    attempts, gaps, seconds, peak, processor = map(float, done.stdout.split())
    return {
        "attempts": attempts, "gaps": gaps, "seconds": round(seconds, 2), "cpu_seconds": round(processor, 2),
        "peak_mb": round(peak, 1),
    }  # fmt: skip


def main() -> None:
    """Measure once and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attempts.jsonl"
        write(path, options.attempts, options.turns)
        size = path.stat().st_size / 1e6
        print(json.dumps(measure(path) | {"turns": options.turns, "input_mb": round(size, 1)}))


if __name__ == "__main__":
    main()
