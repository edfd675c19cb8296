"""How a person would ask for each habit, in many wordings: titles, sentences, lists."""

import numpy as np

from arise.world.habit import Habit

_TITLES: dict[Habit, tuple[str, ...]] = {
    Habit.LIST: ("Cover all inputs", "List the files", "Take every file", "Count the inputs"),
    Habit.GUIDE: ("Read the guide first", "Open the specification", "Follow the guide", "Guide before work"),
    Habit.SOURCES: ("Compare the sources", "Read all notes", "Mind the correction", "Several guides"),
    Habit.PROBE: ("Look before processing", "Show the first lines", "Know the data", "Preview the input"),
    Habit.BACKUP: ("Back up first", "Keep the original", "Copy before a change", "Make a backup"),
    Habit.CHECK: ("Run the check last", "Read back your output", "Verify the output", "Check what you wrote"),
    Habit.REPAIR: ("Correct the argument", "Read the error", "Change what failed", "Never the same call"),
    Habit.DELIVER: ("Take stock at the end", "Make each output", "Complete the outputs", "None missing"),
    Habit.ECONOMY: ("Do not reread", "Start the work", "Look only once", "Use what you know"),
}

_CLOSINGS = (
    "A guess is not enough.",
    "Do not leave it out.",
    "It is worth the time.",
    "Only then go on.",
    "Do this every time.",
    "One look is enough.",
    "Nothing else will tell you.",
)


_PHRASES: dict[Habit, tuple[tuple[str, ...], ...]] = {
    Habit.LIST: (
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
    Habit.GUIDE: (
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
    Habit.SOURCES: (
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
    Habit.PROBE: (
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
    Habit.BACKUP: (
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
    Habit.CHECK: (
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
    Habit.REPAIR: (
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
    Habit.DELIVER: (
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
    Habit.ECONOMY: (
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


def phrase(habit: Habit, random: np.random.Generator) -> str:
    """One sentence that asks for `habit`."""
    when, what, why = (part[int(random.integers(len(part)))] for part in _PHRASES[habit])
    order = random.random()
    capital = what[0].upper() + what[1:]
    if order < 0.5:
        return f"{when} {what} {why}"
    if order < 0.8:
        return f"{capital} {why}"
    return f"{capital} {when[0].lower() + when[1:].rstrip(',')}."


def advice(habit: Habit, random: np.random.Generator) -> str:
    """A piece of guidance as people write it: perhaps a title, one to three sentences or a list, perhaps a closing."""
    sentences = [phrase(habit, random) for _ in range(int(random.integers(1, 4)))]
    if random.random() < 0.2:
        text = "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(sentences, start=1))
    else:
        text = " ".join(sentences)
    if random.random() < 0.6:
        titles = _TITLES[habit]
        text = f"**{titles[int(random.integers(len(titles)))]}.** {text}"
    if random.random() < 0.4:
        text = f"{text} {_CLOSINGS[int(random.integers(len(_CLOSINGS)))]}"
    return text


def vocabulary() -> list[str]:
    """Every phrase part, for a tokenizer that should know these words."""
    phrases = [text for parts in _PHRASES.values() for part in parts for text in part]
    return [*phrases, *(title for titles in _TITLES.values() for title in titles), *_CLOSINGS]
