"""Tasks of one depth: each requires that many behaviours at once, and all task types are equally hard.

A value of the tool call is either stated in the instruction or hidden in a file. A hidden value is never the default
that a careless worker assumes, so a task is solved only if every required behaviour is shown.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from arise.world.habits import WorkerHabit
from arise.world.instance import CHECK, REPORT, Instance, Script, Seen, rows
from arise.world.kinds import KINDS, Kind

REQUIRED = (
    WorkerHabit.GUIDE,
    WorkerHabit.LIST,
    WorkerHabit.CHECK,
    WorkerHabit.PROBE,
    WorkerHabit.DELIVER,
    WorkerHabit.SOURCES,
    WorkerHabit.BACKUP,
)
"""The behaviours that a task can require."""

PROFILES = ("alpha", "beta", "gamma", "delta", "kappa", "sigma")
LEVELS = ("base", "low", "mid", "high", "top", "peak")
SEPARATORS = {"comma": ",", "semi": ";", "pipe": "|", "colon": ":", "hash": "#"}
"""The values of a tool call; the first of each is the default."""

TOOL = """#!/bin/sh
# ./tool PROFILE LEVEL FORMAT INPUT
[ $# -eq 4 ] || {{ echo "error: expected ./tool profile level format input"; exit 2; }}
case "$1" in
{profiles}
*) echo "error: unknown profile $1"; exit 2;;
esac
case "$2" in {levels}) ;; *) echo "error: unknown level $2"; exit 2;; esac
case "$3" in
{formats}
*) echo "error: unknown format $3"; exit 2;;
esac
[ -f "$4" ] || {{ echo "error: no file $4"; exit 1; }}
[ -f ".source-$4" ] || cp "$4" ".source-$4"
out={output}
{{ echo "$1 $2"; awk -F "$sep" "NR==1{{next}} $body" ".source-$4"; }} > .result
wc -l < .result > ".rows-$out"
if [ -e .buffer ]; then rm .buffer; sed '$d' .result > "$out"; else cat .result > "$out"; fi
echo "wrote $out"
"""


@dataclass(frozen=True)
class DeepInstance(Instance):
    """A task that requires every behaviour in `required`; `level` is the second value of its tool call."""

    level: str
    required: frozenset[WorkerHabit]

    def stated(self) -> dict[str, str]:
        """Return the values that the instruction states, by name."""
        values = {"profile": self.profile, "level": self.level, "format": self.separator}
        hidden = {"profile": WorkerHabit.GUIDE, "level": WorkerHabit.SOURCES, "format": WorkerHabit.PROBE}
        return {name: value for name, value in values.items() if hidden[name] not in self.required}

    @property
    def instruction(self) -> str:
        """Return the agent's instruction."""
        several = self.kind.parts > 1
        lines = [self.wording.format(inputs="all csv files" if several else self.inputs[0])]
        lines.append("Follow spec.txt and notes.txt .")
        if stated := self.stated():
            lines.append(f"Use {' and '.join(f'{name} {value}' for name, value in stated.items())} .")
        if self.kind.in_place:
            changed = "all csv files" if several else self.inputs[0]
            lines.append(f"Change {changed} in place and keep the original of {self.inputs[0]} safe .")
        else:
            lines.append(f"Write {'an out file for each' if several else self.outputs[0]} with ./tool .")
        if self.kind.report:
            lines.append("Also write report.txt with ./report .")
        return " ".join(lines)

    def call(self, n: int, profile: str, level: str, separator: str) -> str:
        """Return the tool call for input `n` with these values."""
        return f"./tool {profile} {level} {separator} {self.inputs[n]}"

    def command(self, n: int, profile: str | None = None, separator: str | None = None) -> str:
        """Return the correct tool call for input `n`, or the one with other values."""
        return self.call(n, profile or self.profile, self.level, separator or self.separator)

    def environment(self) -> dict[str, str]:
        """Return the files available to the agent."""
        files = {"tool": self._tool(), "check": CHECK}
        for name, lines in zip(self.inputs, self.rows, strict=True):
            files[name] = "".join(SEPARATORS[self.separator].join(row) + "\n" for row in lines)
        files["spec.txt"] = f"profile : {self.profile}\n"
        files["notes.txt"] = f"level : {self.level}\n"
        if self.kind.report:
            files["report"] = REPORT
        if self.buffered:
            files[".buffer"] = ""
        return files

    def _tool(self) -> str:
        bodies = [self.kind.profiles[n % len(self.kind.profiles)] for n in range(len(PROFILES))]
        return TOOL.format(
            profiles="\n".join(f"{name}) body='{body}';;" for name, body in zip(PROFILES, bodies, strict=True)),
            levels="|".join(LEVELS),
            formats="\n".join(f"{name}) sep='{char}';;" for name, char in SEPARATORS.items()),
            output="$4" if self.kind.in_place else "${4%.csv}.out",
        )


def required_by(task_type: str, depth: int) -> frozenset[WorkerHabit]:
    """Return the behaviours that a task type requires, dealt in turn: types differ in which, never in how many."""
    place = [kind.task_type for kind in KINDS].index(task_type)
    return frozenset(REQUIRED[(place * depth + n) % len(REQUIRED)] for n in range(depth))


def at_depth(kind: Kind, depth: int) -> Kind:
    """Return the kind with exactly the difficulties that its required behaviours answer to."""
    required = required_by(kind.task_type, depth)
    return replace(
        kind,
        parts=2 if WorkerHabit.LIST in required else 1,
        formats=WorkerHabit.PROBE in required,
        buffered=1.0 if WorkerHabit.CHECK in required else 0.0,
        in_place=WorkerHabit.BACKUP in required,
        report=WorkerHabit.DELIVER in required,
        notes=WorkerHabit.SOURCES in required,
    )


def make_deep_instance(kind: Kind, depth: int, random: np.random.Generator) -> DeepInstance:
    """Return a new instance of `kind` at `depth`."""
    required = required_by(kind.task_type, depth)
    kind = at_depth(kind, depth)

    def value(names: tuple[str, ...], hidden_by: WorkerHabit) -> str:
        return str(random.choice(names[1:] if hidden_by in required else names))

    return DeepInstance(
        kind=kind,
        wording=kind.wordings[int(random.integers(len(kind.wordings)))],
        profile=value(PROFILES, WorkerHabit.GUIDE),
        decoy="",
        separator=value(tuple(SEPARATORS), WorkerHabit.PROBE),
        rows=tuple(rows(kind, random) for _ in range(kind.parts)),
        buffered=WorkerHabit.CHECK in required,
        corrected=False,
        level=value(LEVELS, WorkerHabit.SOURCES),
        required=required,
    )


def deep_demonstration(instance: DeepInstance, habits: frozenset[WorkerHabit], random: np.random.Generator) -> Script:
    """Yield the commands of one attempt: a value neither stated nor looked up is its default."""
    looks = {
        WorkerHabit.LIST: "ls",
        WorkerHabit.GUIDE: "cat spec.txt",
        WorkerHabit.SOURCES: "cat notes.txt",
        WorkerHabit.PROBE: f"head -n 2 {instance.inputs[0]}",
    }
    chosen = [look for habit, look in looks.items() if habit in habits]
    if random.random() < 0.3:
        chosen = [chosen[i] for i in random.permutation(len(chosen))]
    if chosen and WorkerHabit.ECONOMY not in habits:
        chosen += [chosen[int(random.integers(len(chosen)))] for _ in range(int(random.integers(1, 3)))]
    yield from _run(chosen)
    stated = instance.stated()
    profile = instance.profile if "profile" in stated or WorkerHabit.GUIDE in habits else PROFILES[0]
    level = instance.level if "level" in stated or WorkerHabit.SOURCES in habits else LEVELS[0]
    separator = instance.separator if "format" in stated or WorkerHabit.PROBE in habits else next(iter(SEPARATORS))
    if WorkerHabit.BACKUP in habits and instance.kind.in_place:
        yield f"cp {instance.inputs[0]} {instance.inputs[0]}.bak"
    for n in range(instance.kind.parts if WorkerHabit.LIST in habits else 1):
        yield from _transform(instance, n, instance.call(n, profile, level, separator), WorkerHabit.CHECK in habits)
    if WorkerHabit.DELIVER in habits and instance.kind.report:
        yield f"./report {instance.outputs[0]}"


def _run(commands: list[str]) -> Script:
    for command in commands:  # noqa: UP028 — a list cannot be sent anything
        yield command


def _transform(instance: DeepInstance, n: int, call: str, checks: bool) -> Generator[str, Seen, None]:
    yield call
    if checks:
        seen = yield f"./check {instance.outputs[n]}"
        if seen.failed and "again" in seen.text:
            yield call
