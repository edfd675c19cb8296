"""Check a Dockerfile from its text and its folder, before anything is built."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from arise.tasks.problem import TaskProblem
from arise.tasks.scan import read_text

_WORDS = (
    *("ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER"),
    *("ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
)
_HEREDOC = re.compile(r"<<-?\s*[\"']?([A-Za-z_]\w*)[\"']?")
_TAKES_HEREDOC = ("RUN", "COPY", "ADD")


@dataclass(frozen=True)
class Instruction:
    """One instruction with its line — `Instruction(3, "COPY", "a b /data/")`."""

    line: int
    word: str
    rest: str


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile: comments left out, continued lines joined, heredocs skipped."""
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.rstrip().endswith("\\"):
            line = line.rstrip()[:-1]
            more = next(lines, (0, ""))[1]
            line += " " + ("\\" if more.lstrip().startswith("#") else more)
        word, _, rest = line.strip().partition(" ")
        for end in _HEREDOC.findall(rest) if word.upper() in _TAKES_HEREDOC else ():
            while (next_line := next(lines, None)) is not None and next_line[1].strip() != end:
                pass
        yield Instruction(number, word.upper(), rest.strip())


def check_dockerfile(path: Path, context: Path | None = None) -> Iterator[TaskProblem]:
    """Yield every problem that is visible without building in `context`, by default the folder of the file."""
    text = read_text(path)
    if isinstance(text, TaskProblem):
        yield text
        return
    found = list(instructions(text))
    first = next((each for each in found if each.word != "ARG"), None)
    if not any(each.word == "FROM" for each in found):
        yield TaskProblem(path, "has no FROM", "name the image to start from")
    elif first is not None and first.word != "FROM":
        yield TaskProblem(path, f"line {first.line}: {first.word} stands before FROM", "begin with FROM")
    for each in found:
        if each.word not in _WORDS:
            yield TaskProblem(path, f"line {each.line}: {each.word} is no instruction", "correct or remove the line")
        elif not each.rest:
            yield TaskProblem(path, f"line {each.line}: {each.word} says nothing", "complete or remove the line")
        elif each.word in ("COPY", "ADD"):
            yield from _copied(each, path, context or path.parent)


def _copied(each: Instruction, path: Path, context: Path) -> Iterator[TaskProblem]:
    """Yield a problem for each source of a COPY or ADD that the build folder does not have."""
    words = _words(each.rest)
    if words is None:
        return
    if len(words) < 2:
        target = words[0] if words else ""
        yield TaskProblem(path, f"line {each.line}: {each.word} names no target: {target!r}", "name source and target")
    for source in words[:-1]:
        if source.startswith(("..", "/..")) or "/../" in source:
            what = f"line {each.line}: copies {source!r}, which lies outside its folder"
            yield TaskProblem(path, what, "move it to environment/")
        elif _is_missing(source, context):
            what = f"line {each.line}: copies {source!r}, which is not in {context.name}/"
            yield TaskProblem(path, what, "add the file")


def sources_of(rest: str) -> list[str]:
    """Return what a COPY or ADD takes from the build folder."""
    return (_words(rest) or [])[:-1]


def _words(rest: str) -> list[str] | None:
    """Return sources and target of a COPY or ADD without its flags; None if its sources are elsewhere."""
    while rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        rest = rest.strip()
        if flag.startswith("--from="):
            return None
    if "<<" in rest:
        return None
    try:
        if rest.startswith("["):
            return [word for word in json.loads(rest) if isinstance(word, str)]
        return shlex.split(rest)
    except ValueError:
        return rest.split()


def _is_missing(source: str, folder: Path) -> bool:
    if "$" in source or "://" in source or source.startswith("git@"):
        return False
    relative = source.lstrip("/") or "."
    if any(sign in relative for sign in "*?["):
        return next(folder.glob(relative), None) is None
    return not (folder / relative).exists()
