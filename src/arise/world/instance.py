"""One task instance: its data, correct option, files and oracle, all from one random stream."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from arise.world.kinds import IDS, PROFILES, SEPARATORS, Kind


class Seen(NamedTuple):
    """The result of a command: its output, and whether it failed."""

    text: str
    failed: bool


Script = Generator[str, Seen, None]

TOOL = """#!/bin/sh
# ./tool PROFILE FORMAT INPUT
[ $# -eq 3 ] || {{ echo "error: expected ./tool profile format input"; exit 2; }}
case "$1" in
{profiles}
*) echo "error: unknown profile $1 , use {profile_names}"; exit 2;;
esac
case "$2" in
{formats}
*) echo "error: unknown format $2 , use {format_names}"; exit 2;;
esac
[ -f "$3" ] || {{ echo "error: no file $3"; exit 1; }}
IFS= read -r header < "$3"
case "$header" in
*"$sep"*) ;;
*) for pair in {format_pairs}; do
     case "$header" in *"${{pair#*=}}"*) echo "error: wrong format $2 , expected ${{pair%%=*}}"; exit 2;; esac
   done;;
esac
out={output}
awk -F "$sep" "NR==1{{next}} $body" "$3" > .result
wc -l < .result > ".rows-$out"
if [ -e .buffer ]; then rm .buffer; sed '$d' .result > "$out"; else cat .result > "$out"; fi
echo "wrote $out"
"""

CHECK = """#!/bin/sh
# ./check OUTPUT
[ -f "$1" ] && [ -f ".rows-$1" ] || { echo "error: nothing written to $1"; exit 1; }
have=$(wc -l < "$1"); want=$(cat ".rows-$1")
if [ "$have" -lt "$want" ]; then echo "error: $1 incomplete , run ./tool again"; exit 1; fi
echo "ok $1"
"""

REPORT = """#!/bin/sh
# ./report OUTPUT
[ -f "$1" ] || { echo "error: nothing written to $1"; exit 1; }
echo "rows $(wc -l < "$1")" > report.txt
echo "wrote report.txt"
"""


@dataclass(frozen=True)
class Instance:
    """A concrete task of a kind.

    `buffered`: its tool withholds rows on its first run. `corrected`: its notes override its specification.
    """

    kind: Kind
    wording: str
    profile: str
    decoy: str
    separator: str
    rows: tuple[tuple[tuple[str, ...], ...], ...]
    buffered: bool
    corrected: bool

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("in.csv",) if self.kind.parts == 1 else tuple(f"{IDS[n]}.csv" for n in range(self.kind.parts))

    @property
    def outputs(self) -> tuple[str, ...]:
        if self.kind.in_place:
            return self.inputs
        return tuple(name.replace(".csv", ".out") for name in self.inputs)

    @property
    def specified(self) -> str:
        """Return the profile that spec.txt names."""
        return self.decoy if self.corrected else self.profile

    @property
    def instruction(self) -> str:
        """Return the agent's instruction, without the profile and the separator."""
        named = self.inputs[0] if self.kind.parts == 1 else "all csv files"
        lines = [self.wording.format(inputs=named), "Follow spec.txt ."]
        if self.kind.in_place:
            lines.append(f"Change {self.inputs[0]} in place and keep the original safe .")
        else:
            lines.append(f"Write {self.outputs[0] if self.kind.parts == 1 else 'an out file for each'} with ./tool .")
        if self.kind.report:
            lines.append("Also write report.txt with ./report .")
        return " ".join(lines)

    def command(self, n: int, profile: str | None = None, separator: str | None = None) -> str:
        """Return the tool call for input `n`."""
        return f"./tool {profile or self.profile} {separator or self.separator} {self.inputs[n]}"

    def environment(self) -> dict[str, str]:
        """Return the files available to the agent."""
        files = {"tool": self._tool(), "check": CHECK}
        for name, rows in zip(self.inputs, self.rows, strict=True):
            files[name] = "".join(SEPARATORS[self.separator].join(row) + "\n" for row in rows)
        files["spec.txt"] = f"profile : {self.specified}\n"
        if self.kind.notes:
            correction = f"correction : profile is {self.profile}"
            files["notes.txt"] = f"{correction if self.corrected else 'no correction : follow spec.txt'}\n"
        if self.kind.report:
            files["report"] = REPORT
        if self.buffered:
            files[".buffer"] = ""
        return files

    def oracle(self) -> list[str]:
        """Return commands that solve the task."""
        commands = []
        for n, (source, target) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            if self.kind.in_place:
                commands.append(f"cp {source} {source}.bak")
            commands.append(self.command(n))
            commands.append(f"./check {target} || {self.command(n)}")
        if self.kind.report:
            commands.append(f"./report {self.outputs[0]}")
        return commands

    def _tool(self) -> str:
        return TOOL.format(
            profiles="\n".join(
                f"{name}) body='{body}';;" for name, body in zip(PROFILES, self.kind.profiles, strict=True)
            ),
            profile_names=" ".join(PROFILES),
            formats="\n".join(f"{name}) sep='{char}';;" for name, char in SEPARATORS.items()),
            format_names=" ".join(SEPARATORS),
            format_pairs=" ".join(f"'{name}={char}'" for name, char in SEPARATORS.items()),
            output="$3" if self.kind.in_place else "${3%.csv}.out",
        )


def make_instance(kind: Kind, random: np.random.Generator, corrections: float = 1.0) -> Instance:
    """Return a new instance of `kind`, whose notes correct its specification with probability `corrections`."""
    profile, decoy = random.choice(PROFILES, size=2, replace=False).tolist()
    separator = str(random.choice(list(SEPARATORS))) if kind.formats else "comma"
    data = tuple(rows(kind, random) for _ in range(kind.parts))
    wording = kind.wordings[int(random.integers(len(kind.wordings)))]
    buffered = bool(random.random() < kind.buffered)
    # No draw at 1.0: one seed then produces the same tasks with and without support for corrections.
    corrected = kind.notes and (corrections == 1.0 or bool(random.random() < corrections))
    return Instance(kind, wording, profile, decoy, separator, data, buffered, corrected)


def rows(kind: Kind, random: np.random.Generator) -> tuple[tuple[str, ...], ...]:
    """Return a header and three to five rows; ids repeat and values are missing if the kind says so."""
    count = int(random.integers(3, 6))
    ids = random.choice(IDS, size=count, replace=False).tolist()
    if kind.repeats:
        ids[-1] = ids[0]
    values = [str(value) for value in random.integers(1, 10, size=count)]
    if kind.blanks:
        values[int(random.integers(1, count))] = ""
    columns = [ids, values]
    header = ["id", "val"]
    if kind.sources:
        columns.append([str(value) for value in random.integers(1, 10, size=count)])
        header.append("other")
    return (tuple(header), *(tuple(row) for row in zip(*columns, strict=True)))
