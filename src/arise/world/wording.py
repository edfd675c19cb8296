"""Natural requests for each habit, in many wordings."""

import numpy as np

from arise.world.habits import WorkerHabit

TWO_SENTENCES = 0.3

_PHRASES: dict[WorkerHabit, tuple[tuple[str, ...], ...]] = {
    WorkerHabit.LIST: (
        (
            "Before you start,",
            "First,",
            "At the beginning,",
            "When a task has several files,",
            "When there are many inputs,",
        ),
        (
            "list all input files and count them",
            "list the folder with ls",
            "see which files are there",
            "find the full set of inputs",
            "enumerate every file of the task",
        ),
        (
            "and process each one.",
            "and cover every input.",
            "so that none is missing.",
            "then work through all of them.",
        ),
    ),
    WorkerHabit.GUIDE: (
        (
            "Before you run or write anything,",
            "First,",
            "Before your own plan,",
            "When a guide is supplied,",
            "Before you act,",
        ),
        (
            "open the specification and read it",
            "read the guide",
            "look for a specification, guide or notes among the files",
            "read spec.txt",
            "consult the documentation",
        ),
        ("and follow what it says.", "and use its profile.", "then do what it says.", "instead of a guess."),
    ),
    WorkerHabit.SOURCES: (
        (
            "When there are several guides or notes,",
            "When sources differ,",
            "If there are notes,",
            "Before choosing a profile,",
        ),
        (
            "read all of them",
            "open every guide and every note",
            "read notes.txt too",
            "look for a correction in the notes",
            "compare the guides",
        ),
        (
            "and follow the newer or stronger one.",
            "and resolve where they differ.",
            "before you write.",
            "then decide.",
        ),
    ),
    WorkerHabit.PROBE: (
        (
            "Before you run any tool on an input file,",
            "Before processing data,",
            "When the form is unknown,",
            "First,",
        ),
        (
            "show its first lines",
            "look at the first lines of the input",
            "preview the rows with head",
            "inspect the columns and the form of the data",
            "look at a sample of the input",
        ),
        (
            "and choose your options from them.",
            "and use the format you see.",
            "instead of assuming it.",
            "to note its form.",
        ),
    ),
    WorkerHabit.BACKUP: (
        (
            "Before you change or delete a file,",
            "Before you overwrite a file,",
            "When a file is changed in place,",
            "Before a change,",
        ),
        (
            "copy it to a backup name",
            "make a copy of the original",
            "save a backup with cp",
            "keep a copy of the file that is already there",
            "back up the file",
        ),
        ("and then change the file.", "so that nothing is lost.", "first.", "and touch nothing else."),
    ),
    WorkerHabit.CHECK: (
        (
            "After your last write,",
            "Before you finish,",
            "Before submit,",
            "After writing an output,",
            "Once the output is written,",
        ),
        (
            "run the check on your output",
            "run the check that the files include",
            "open the output and look once more",
            "verify what you wrote",
            "read back the output with the check",
        ),
        (
            "and fix what it reports.",
            "and run the tool again if it is incomplete.",
            "and fix what differs.",
            "once.",
        ),
    ),
    WorkerHabit.REPAIR: (
        (
            "When a command rejects your call,",
            "After an error,",
            "When a command fails,",
            "If the tool reports an error,",
        ),
        (
            "read the whole error message and change the value it names",
            "find the option or value it names and change that",
            "put in the value it expects",
            "change the wrong argument",
            "correct the argument",
        ),
        (
            "and only then run it again.",
            "instead of the same call.",
            "before you try again.",
            "and never repeat it unchanged.",
        ),
    ),
    WorkerHabit.DELIVER: (
        ("When the task wants several outputs,", "Before you finish,", "At the end,", "Before submit,"),
        (
            "make each of them",
            "see that no output is missing",
            "make the report too",
            "make every output that the task wants",
            "list the outputs and complete them",
        ),
        ("and leave none out.", "so that none is missing.", "before you finish.", "in its place."),
    ),
    WorkerHabit.ECONOMY: (
        ("Once you have read the task files,", "After reading a file,", "When you know enough,", "While you work,"),
        (
            "start the work",
            "use what you already know",
            "do not look at a file again",
            "do not read the same file again",
            "avoid repeated reads",
        ),
        ("unless something changed.", "and save turns.", "and go on.", "at once."),
    ),
}


def phrase(habit: WorkerHabit, random: np.random.Generator) -> str:
    """Return one sentence that requests `habit`."""
    when, what, why = (part[int(random.integers(len(part)))] for part in _PHRASES[habit])
    order = random.random()
    capital = what[0].upper() + what[1:]
    if order < 0.5:
        return f"{when} {what} {why}"
    if order < 0.8:
        return f"{capital} {why}"
    return f"{capital} {when[0].lower() + when[1:].rstrip(',')}."


def advice(habit: WorkerHabit, random: np.random.Generator) -> str:
    """Return a piece of natural guidance: one sentence, sometimes two."""
    count = 2 if random.random() < TWO_SENTENCES else 1
    return " ".join(phrase(habit, random) for _ in range(count))


def vocabulary() -> list[str]:
    """Return every phrase part, for a tokenizer that should know these words."""
    return [text for parts in _PHRASES.values() for part in parts for text in part]


def guidance(asked: frozenset[WorkerHabit], random: np.random.Generator) -> tuple[str, ...]:
    """Return one piece of advice for each habit, in random order."""
    habits = sorted(asked)
    return tuple(advice(habits[i], random) for i in random.permutation(len(habits)))
