"""How fast and how small the dashboard's pages are on a long run, from outside, over a real socket.

python -m benchmarks.dashboard [FOLDER]   writes a run of 1,000 iterations and 256,000 rollouts first if there is none
"""

import http.client
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil
from tests.dashboard.test_long_trajectory import write_long_run

from arise.run.reader import RunReader
from benchmarks.big_run import write_run

FIRST_BYTE, PAGE_BYTES, MEMORY, LONG = 0.3, 1e6, 300e6, 1.5
REPEATS = 7


def addresses(run: Path) -> list[str]:
    """Every kind of page, among them the heaviest of its kind."""
    with RunReader.open(run) as reader:
        row = reader.rollouts(limit=1)[0]
        longest = max(reader.pairs(), key=lambda pair: (pair.retired_at or reader.committed()) - pair.born_at)
        task = max(reader.tasks(), key=lambda task: task.groups)
    root, committed = f"/runs/{run.name}", 1000
    return [
        root,
        *(f"{root}/{section}" for section in ("pool", "sampler", "tasks", "rollouts", "judge", "evaluation", "health")),
        f"{root}/pool?status=retired&page=2",
        f"{root}/pool/{longest.rubric.id}",
        f"{root}/sampler?iteration={committed // 2}",
        f"{root}/tasks?order=rate&page=2",
        f"{root}/tasks/{task.id}",
        f"{root}/rollouts?outcome=fault",
        f"{root}/rollouts?page=2000",
        *(f"{root}/rollouts?order={order}" for order in ("reward", "turns", "tokens", "advantage")),
        f"{root}/rollouts?rubric={longest.rubric.id}&verdict=fail",
        f"{root}/rollouts?rubric={longest.rubric.id}&verdict=fail&outcome=pass&order=tokens",
        f"{root}/rollouts/{row.id}",
        f"/compare?run={run.name}",
        f"{root}?csv=pass-rate",
    ]


def first_byte(connection: http.client.HTTPConnection, address: str) -> tuple[float, float, int]:
    """Seconds to the first byte and to the last, and the size."""
    began = time.perf_counter()
    connection.request("GET", address)
    answer = connection.getresponse()
    first = time.perf_counter() - began
    content = answer.read()
    assert answer.status == 200, (address, answer.status)
    return first, time.perf_counter() - began, len(content)


def serve(*runs: Path) -> tuple[subprocess.Popen[str], int]:
    """`arise view` as a person starts it."""
    command = [sys.executable, "-m", "arise.cli.main", "view", *map(str, runs), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    server.stdout.readline()
    port = int(server.stdout.readline().split("/")[2].rpartition(":")[2])
    return server, port


def _worked(process: psutil.Process) -> float:
    """Seconds of processor: what a page costs whatever else runs on the machine."""
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def measure(run: Path, long_run: Path, turns: int) -> None:
    """Print the table and whether the numbers hold."""
    server, port = serve(run, long_run)
    process, worst = psutil.Process(server.pid), [0.0, 0.0, 0.0]
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        print(f"{'first byte ms':>14} {'median':>7} {'cpu ms':>7} {'kB':>7}  page")
        for address in addresses(run):
            first, _, size = first_byte(connection, address)
            before = _worked(process)
            again = median(first_byte(connection, address)[0] for _ in range(REPEATS))
            worked = (_worked(process) - before) / REPEATS
            print(f"{1000 * first:14.0f} {1000 * again:7.0f} {1000 * worked:7.0f} {size / 1e3:7.0f}  {address}")
            worst = [max(worst[0], first), max(worst[1], size), max(worst[2], process.memory_info().rss)]
        before = process.memory_info().rss
        for turn in (1, turns // 2, turns):
            _, whole, size = first_byte(connection, f"/runs/{long_run.name}/rollouts/k0/long/0?turn={turn}")
            rise = (process.memory_info().rss - before) / 1e6
            shown = f"{whole:.2f} s (limit {LONG}), {size / 1e3:.0f} kB, memory +{rise:.0f} MB"
            print(f"100 MB trajectory, turn {turn}: {shown}")
        connection.close()
    finally:
        server.terminate()
        server.wait()
    print(f"load {', '.join(f'{value:.1f}' for value in psutil.getloadavg())} on {psutil.cpu_count()} cores")
    print(f"first byte at most {1000 * worst[0]:.0f} ms (limit {1000 * FIRST_BYTE:.0f})")
    print(f"page at most {worst[1] / 1e3:.0f} kB (limit {PAGE_BYTES / 1e3:.0f})")
    print(f"server memory at most {worst[2] / 1e6:.0f} MB (limit {MEMORY / 1e6:.0f})")


def main() -> None:
    """The command."""
    with tempfile.TemporaryDirectory() as temporary:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "big"
        if not (run / "run.db").exists():
            write_run(run, iterations=1000, tasks=32, group=8, tell=100)
        turns = write_long_run(Path(temporary) / "long", 100)
        measure(run, Path(temporary) / "long", turns)


if __name__ == "__main__":
    main()
