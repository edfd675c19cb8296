"""Health: faults, sessions, disk use."""

import os
import shutil
import time
from collections import Counter
from itertools import groupby
from pathlib import Path

from arise.report.dashboard.charts import Figure, Link, Table
from arise.report.dashboard.charts.bars import stacked_bars
from arise.report.dashboard.charts.palette import GREY, ORANGE, PURPLE, RED, SERIES
from arise.report.dashboard.pages.page import Asked, Fact, Page
from arise.report.dashboard.spend import call_events
from arise.run.numbering import iteration_of, rollout_name
from arise.run.reader import RunReader
from arise.text.numbers import amount, duration, size

SHOWN = 50
KINDS = {"rollouts with a fault": RED, "incomplete groups": ORANGE, "absent verdicts": PURPLE, "skipped updates": GREY}


def build(asked: Asked) -> Page:
    """Build the page on the state of the process."""
    run = asked.run
    iterations, sessions = run.iterations(), run.sessions()
    faults = Counter(run.faults_by_k())
    tried, lost = run.attempt_sums()
    disk = _disk(run.folder)
    events, _ = call_events(run.folder)
    content = {
        "sessions": [(time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(s.at)), s) for s in sessions],
        "disk": Table(("part", "files", "MB"), [(name, files, used / 1e6) for name, files, used in disk]),
        "faults": _faults(asked),
        "set_aside": _set_aside(asked),
        "lost": Table(("evaluation", "task", "attempt", "fault"), run.lost_attempts(SHOWN)),
        "checkpoints": [i for i in iterations if i.checkpoint and (run.folder / i.checkpoint).is_dir()],
        "limits": [next(same) for _, same in groupby(run.missing_limits(), lambda noted: noted[1])],
        "retries": sorted(events.items()),
        "folder": str(run.folder),
    }
    free = shutil.disk_usage(run.folder).free
    facts = [
        Fact(amount(sum(faults.values())), "rollouts with a fault"),
        Fact(
            amount(sum(int(i.metrics.get("without_own_reward", 0)) for i in iterations)),
            "rollouts that test.sh gave no reward",
            "these count as 0; each rollout has its reason",
        ),
        Fact(amount(lost), "evaluation attempts lost", f"of {amount(tried)}"),
        Fact(amount(_unanswered(events)), "calls to models without a reply"),
        Fact(str(max(0, len(sessions) - 1)), "times resumed or re-opened"),
        Fact(size(sum(used for *_, used in disk)), "on disk", f"{size(free)} free"),
        Fact(duration(max(0.0, time.time() - iterations[-1].at)) if iterations else "–", "since the last commit"),
    ]
    return Page("health.html", "Health", "health", facts, [*_faults_by_iteration(run, faults), *_time(asked)], content)


def _faults_by_iteration(run: RunReader, faults: Counter[int]) -> list[Figure]:
    """Draw what went wrong by iteration; nothing if all went well."""
    iterations = run.iterations()
    absent = Counter({sums.k: sums.absent for sums in run.verdict_sums()})
    values = {
        "rollouts with a fault": [float(faults[i.k]) for i in iterations],
        "incomplete groups": [float(i.metrics.get("incomplete", 0)) for i in iterations],
        "absent verdicts": [float(absent[i.k]) for i in iterations],
        "skipped updates": [float(i.metrics.get("skipped", 0)) for i in iterations],
    }
    numbers = [i.number for i in iterations]
    figure = Figure(
        "faults",
        "What went wrong, by iteration",
        stacked_bars("faults by iteration", numbers, values, KINDS, width=1140.0, height=200.0),
        Table(("iteration", *values), list(zip(numbers, *values.values(), strict=True))),
        "None of these count as failures of the policy.",
        tuple(KINDS.items()),
        wide=True,
    )
    return [figure] if any(any(found) for found in values.values()) else []


def _time(asked: Asked) -> list[Figure]:
    """Draw the seconds of an iteration by part, if they were recorded."""
    found = asked.run.vitals("seconds.")
    if not found:
        return []
    ks, parts = sorted({k for k, _, _ in found}), sorted({part for _, part, _ in found})
    spent = {(k, part): seconds for k, part, seconds in found}
    values = {part: [spent.get((k, part), 0.0) for k in ks] for part in parts}
    colours = {part: (*SERIES, GREY)[n % (len(SERIES) + 1)] for n, part in enumerate(parts)}
    numbers = [iteration_of(k) for k in ks]
    return [
        Figure(
            "seconds",
            "Where the seconds of an iteration went",
            stacked_bars("seconds of an iteration by part", numbers, values, colours, width=1140.0, height=200.0),
            Table(("iteration", *parts), list(zip(numbers, *values.values(), strict=True))),
            "",
            tuple(colours.items()),
            wide=True,
        )
    ]


def _set_aside(asked: Asked) -> Table:
    """Tabulate tasks that are set aside because faults left their groups incomplete."""
    run = asked.run
    rows = [
        (
            Link(task, asked.links.task(task)),
            faulty.in_a_row,
            iteration_of(faulty.since or 0),
            iteration_of(faulty.until or 0),
        )
        for task, faulty in run.set_aside().items()
    ]
    return Table(("task", "groups lost in a row", "set aside after", "tried again from"), rows)


def _unanswered(events: Counter[str]) -> int:
    return sum(count for name, count in events.items() if name.endswith(".unanswered"))


def _faults(asked: Asked) -> Table:
    rows = [
        (Link(rollout_name(row.id), asked.links.trajectory(row.id)), row.iteration, row.fault)
        for row in asked.run.rollouts(outcome="fault", limit=SHOWN)
    ]
    return Table(("rollout", "iteration", "fault"), rows)


def _disk(folder: Path) -> list[tuple[str, int, int]]:
    """Return (name, files, bytes) of every entry of the run folder."""
    found = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            sizes = [
                os.lstat(os.path.join(parent, name)).st_size
                for parent, _, names in os.walk(entry.path)
                for name in names
            ]
            found.append((f"{entry.name}/", len(sizes), sum(sizes)))
        else:
            found.append((entry.name, 1, entry.stat(follow_symlinks=False).st_size))
    return found
