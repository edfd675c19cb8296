"""Habits of a scripted worker, how often it has them, and how a person would ask for each of them.

A worker shows every habit now and then by itself and clearly more often when asked: so a model that learns from its
demonstrations can follow guidance, and has something to build on without it.
"""

from enum import StrEnum

import numpy as np


class Habit(StrEnum):
    """What a careful worker does; none of it is enough for any task alone."""

    LIST = "list"
    GUIDE = "guide"
    SOURCES = "sources"
    PROBE = "probe"
    BACKUP = "backup"
    CHECK = "check"
    REPAIR = "repair"
    DELIVER = "deliver"
    ECONOMY = "economy"


UNASKED = {
    Habit.LIST: 0.35,
    Habit.GUIDE: 0.40,
    Habit.SOURCES: 0.25,
    Habit.PROBE: 0.30,
    Habit.BACKUP: 0.20,
    Habit.CHECK: 0.20,
    Habit.REPAIR: 0.40,
    Habit.DELIVER: 0.40,
    Habit.ECONOMY: 0.60,
}
"""How often a habit shows without being asked for."""

ASKED = 0.85
"""How often it shows when asked for."""

_PHRASES: dict[Habit, tuple[tuple[str, ...], ...]] = {
    Habit.LIST: (
        (
            "Before you start ,",
            "First ,",
            "At the beginning",
            "When a task has several files ,",
            "When inputs are many ,",
        ),
        (
            "list the folder",
            "list all files",
            "run ls",
            "enumerate every input file",
            "see which files exist",
            "find the full set of inputs",
        ),
        (
            "and process every one of them .",
            "and cover each input .",
            "so that no file is left out .",
            "then handle all of them .",
            ".",
        ),
    ),
    Habit.GUIDE: (
        (
            "Before writing anything ,",
            "First ,",
            "Before your own design ,",
            "When guidance is supplied ,",
            "Before you act ,",
        ),
        (
            "read the specification",
            "open the supplied guide",
            "read spec.txt",
            "consult the documentation",
            "read the given instructions file",
            "open the relevant guidance file",
        ),
        (
            "and follow its procedure .",
            "and use what it says .",
            "to learn the profile .",
            "instead of guessing .",
            ".",
        ),
    ),
    Habit.SOURCES: (
        (
            "When sources disagree ,",
            "When two guidance files exist ,",
            "If there are notes ,",
            "Before choosing a profile ,",
        ),
        (
            "read both and compare them",
            "open every guidance file",
            "read notes.txt too",
            "look for a correction",
            "check which source takes precedence",
        ),
        ("and follow the one that overrules .", "and resolve the conflict .", "then decide by the evidence .", "."),
    ),
    Habit.PROBE: (
        ("Before processing data ,", "Before the tool runs ,", "When the input structure is unknown ,", "First ,"),
        (
            "look at a sample of the input",
            "preview the first rows",
            "inspect the data with head",
            "probe the input format",
            "look at the real structure of the input",
        ),
        ("instead of assuming it .", "and use the format you see .", "so that arguments fit .", "."),
    ),
    Habit.BACKUP: (
        (
            "Before changing a file in place ,",
            "Before you overwrite anything ,",
            "When a file will be overwritten ,",
            "Before a destructive action ,",
        ),
        (
            "make a backup",
            "copy the original",
            "save a copy of the file",
            "keep a backup with cp",
            "back up the original file",
        ),
        ("so that nothing is lost .", "and touch only what was asked .", "first .", "."),
    ),
    Habit.CHECK: (
        (
            "After the last write ,",
            "Before you finish ,",
            "Before submit ,",
            "After writing an output ,",
            "Once a result is written ,",
        ),
        (
            "run the check",
            "verify the output",
            "read the result back",
            "run the visible check script",
            "validate what you wrote",
            "check the artifact once",
        ),
        ("and fix what it finds .", "and repeat the work if it is incomplete .", "and correct deviations .", "."),
    ),
    Habit.REPAIR: (
        ("When a command fails ,", "After an error ,", "When a call is rejected ,", "If the tool reports an error ,"),
        (
            "read the message and change the argument",
            "correct the argument it names",
            "use the expected value",
            "fix the cause before trying again",
            "change the wrong argument",
        ),
        ("instead of repeating the same call .", "before the next try .", "and do not retry unchanged .", "."),
    ),
    Habit.DELIVER: (
        ("Before finishing ,", "At the end ,", "When several deliverables are required ,", "Before submit ,"),
        (
            "write every deliverable",
            "confirm that each required file exists",
            "take an inventory of the outputs",
            "make the report too",
            "produce all requested files",
        ),
        ("and leave none out .", "in its place .", "and complete what is missing .", "."),
    ),
    Habit.ECONOMY: (
        (
            "Once you know the procedure ,",
            "After reading a file ,",
            "When information is gathered ,",
            "While you work ,",
        ),
        (
            "do not read the same file again",
            "avoid repeated reads",
            "reuse what you already saw",
            "start the work at once",
            "do not repeat the same search",
        ),
        ("and save turns .", "unless something changed .", "and go on .", "."),
    ),
}


def phrase(habit: Habit, random: np.random.Generator) -> str:
    """One of the many ways to ask for `habit`."""
    when, what, why = (part[int(random.integers(len(part)))] for part in _PHRASES[habit])
    order = random.random()
    if order < 0.6:
        return f"{when} {what} {why}"
    capital = what[0].upper() + what[1:]
    if order < 0.8:
        return f"{capital} {why}"
    return f"{capital} {when[0].lower() + when[1:].rstrip(' ,')} ."


def vocabulary() -> list[str]:
    """Every phrase part, for a tokenizer that should know these words."""
    return [text for parts in _PHRASES.values() for part in parts for text in part]


def habits_shown(asked: frozenset[Habit], random: np.random.Generator) -> frozenset[Habit]:
    """Which habits a worker shows in one attempt."""
    return frozenset(habit for habit in Habit if random.random() < (ASKED if habit in asked else UNASKED[habit]))
