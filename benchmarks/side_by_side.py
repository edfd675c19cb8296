"""Contenders alternate within each round, so that a busy machine slows both."""

import statistics
import time
from collections.abc import Callable, Mapping

import psutil

ROUNDS = 3


def side_by_side(contenders: Mapping[str, Callable[[int], object]], tokens: int, title: str) -> dict[str, float]:
    """Alternate the contenders, print tokens a second of each; return how many times faster the first one is."""
    found: dict[str, float] = {}
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(ROUNDS + 1):
        for name, run in contenders.items():
            begin, cpu_begin = time.perf_counter(), _cpu_seconds()
            run(turn)
            if turn:  # the first round warms up
                wall[name].append(time.perf_counter() - begin)
                cpu[name].append(_cpu_seconds() - cpu_begin)
    first = next(iter(contenders))
    print(f"\n{title}\n{'':26}{'tokens/s':>9}{'seconds':>9}{'cpu s':>8}   times the {first}: wall (rounds), cpu")
    for name in contenders:
        seconds = statistics.median(wall[name])
        ratios = [other / own for other, own in zip(wall[name], wall[first], strict=True)]
        found[name] = statistics.median(ratios)
        shown = f"{found[name]:.2f} ({', '.join(f'{r:.2f}' for r in ratios)})"
        cpu_ratio = statistics.median(cpu[name]) / statistics.median(cpu[first])
        row = f"{name:26}{tokens / seconds:>9.0f}{seconds:>9.2f}{statistics.median(cpu[name]):>8.2f}"
        print(row + ("" if name == first else f"   {shown}, {cpu_ratio:.2f}"), flush=True)
    return found


def _cpu_seconds() -> float:
    """Of this process and of those it started."""
    children = (child.cpu_times() for child in psutil.Process().children(recursive=True))
    return time.process_time() + float(sum(spent.user + spent.system for spent in children))
