"""Reads `cases.txt`: situations for the detectors, written so that they can be read like notes."""

from pathlib import Path
from typing import NamedTuple

from arise.types import StopReason

PASS, NONE = "pass", "none"


class Case(NamedTuple):
    """`expected` is `pass`, `none` (not applicable) or the name of the miss."""

    pattern: str
    expected: str
    why: str
    instruction: str
    steps: tuple[str, ...]
    stop: StopReason


def read_cases() -> list[Case]:
    text = Path(__file__).with_name("cases.txt").read_text(encoding="utf-8")
    blocks = [block.splitlines() for block in text.split("\n\n") if not block.startswith("#")]
    return [_case(block) for block in blocks if block]


def _case(lines: list[str]) -> Case:
    head, why = lines[0].split(": ", 1)
    pattern, expected = head.split()
    steps = tuple(line[2:] if line[0] == "$" else f"say: {line[2:]}" for line in lines if line[0] in '$"')
    stop = StopReason.TURN_LIMIT if "cut" in lines else StopReason.FINISHED
    return Case(pattern, expected, why, lines[1].removeprefix("task "), steps, stop)


CASES = read_cases()
