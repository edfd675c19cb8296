"""A tolerant parser of shell commands: simple commands with their words, redirections and inline code.

It never executes, never raises and reads each character once: unbalanced quotes and unterminated here-documents are
ordinary input from a model. `shlex` is not used because it rejects both and supports neither operators nor
here-documents.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from arise.analyst.vocabulary import vocabulary

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\f\v]+|\\\n)
    | (?P<comment>(?<![^\s;|&(])\#[^\n]*)
    | (?P<here><<-?(?!<))
    | (?P<redirect>(?:\d{1,2}|&)?(?:>>|>\||>&|>|<<<|<>|<&|<))
    | (?P<split>&&|\|\||;;|\|&|[;|&\n()])
    | (?P<word>(?:'[^']*'?|"(?:[^"\\]|\\.)*"?|\\.|\$\{[^}\n]*\}?|[^\s;|&()<>'"\\])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'?|"((?:[^"\\]|\\.)*)"?|\\(.)""", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(\w+)([^}]*)\}|(\w+))")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PREFIXES = vocabulary("prefixes")
_CLOSERS = frozenset(("done", "fi", "esac", "}"))
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_EXPANSION_LIMIT = 64


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """`sort -u in.csv > out.csv` — words `("sort", "-u", "in.csv")`, outputs `("out.csv",)`."""

    words: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    code: str = ""
    pipeline: int = 0
    """Commands joined by pipes share a number."""

    @property
    def text(self) -> str:
        """Return the same text for commands that differ only in blanks and quotes."""
        return " ".join((*self.words, *(f"< {path}" for path in self.inputs), *(f"> {path}" for path in self.outputs)))


@dataclass(slots=True)
class _Draft:
    words: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    code: str = ""
    pipeline: int = 0


def parse(command: str) -> tuple[SimpleCommand, ...]:
    """Return all simple commands of a command line, in order; invalid input yields few or none."""
    return tuple(_parse(command, 0))


def _parse(command: str, depth: int) -> Iterator[SimpleCommand]:
    loops: dict[str, list[str]] = {}
    for draft in _drafts(command):
        words = _bare(draft.words)
        if len(words) > 2 and words[0] == "for" and words[2] == "in":
            loops[words[1]] = words[3:][:_EXPANSION_LIMIT]
            continue
        if loops:
            words, draft.inputs, draft.outputs = (_expand(part, loops) for part in (words, draft.inputs, draft.outputs))
        if len(words) > 2 and words[0] in _SHELLS and words[1] in ("-c", "-lc", "-ec") and depth < 2:
            offset = 1000 * (draft.pipeline + 1)  # keeps inner pipelines separate from outer ones
            yield from (replace(inner, pipeline=offset + inner.pipeline) for inner in _parse(words[2], depth + 1))
        elif words or draft.outputs:
            yield SimpleCommand(tuple(words), tuple(draft.inputs), tuple(draft.outputs), draft.code, draft.pipeline)
        if words and words[0] == "find" and "-exec" in words:
            yield _executed(words, draft.pipeline)


def _drafts(command: str) -> Iterator[_Draft]:
    """Split at operators; the body of a here-document becomes `code` of the command that opened it."""
    draft, waiting = _Draft(), list[tuple[_Draft, str]]()
    expect, pipeline, position = "", 0, 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:  # a single backslash at the end
            position += 1
            continue
        position, kind, text = match.end(), match.lastgroup, match.group()
        if kind == "word":
            _place(draft, _plain(text), expect, waiting)
            expect = ""
        elif kind in ("here", "redirect"):
            expect = "<<" if kind == "here" else text.lstrip("0123456789&")
        elif kind == "split":
            if text == "\n" and waiting:
                position = _take_bodies(command, position, waiting)
            yield draft
            pipeline += text not in ("|", "|&")
            draft, expect = _Draft(pipeline=pipeline), ""
    yield draft


def _place(draft: _Draft, word: str, expect: str, waiting: list[tuple[_Draft, str]]) -> None:
    if expect == "<<":
        waiting.append((draft, word))
    elif expect == "<<<":
        draft.code = word
    elif expect in ("<", "<>"):
        draft.inputs.append(word)
    elif expect.startswith(">"):
        if not word.startswith(("&", "/dev/")) and not (expect == ">&" and word.isdigit()):
            draft.outputs.append(word)
    elif not expect:
        draft.words.append(word)


def _take_bodies(command: str, position: int, waiting: list[tuple[_Draft, str]]) -> int:
    """Read the here-documents that begin on this line; an unterminated one takes the rest."""
    for draft, delimiter in waiting:
        end = re.compile(rf"^\t*{re.escape(delimiter)}[ \t]*$", re.MULTILINE).search(command, position)
        draft.code = command[position : end.start() if end else len(command)]
        position = min(end.end() + 1, len(command)) if end else len(command)
    waiting.clear()
    return position


def _plain(word: str) -> str:
    """Return the word without its quotes."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(lambda m: m[1] if m[1] is not None else (m[2] if m[2] is not None else m[3]) or "", word)


def _bare(words: list[str]) -> list[str]:
    """Remove prefixes of the program: keywords, assignments, `env`, `timeout 5`."""
    start = 0
    while start < len(words):
        word = words[start]
        if word in ("timeout", "env", "nice", "xargs", "stdbuf"):
            start += 1
            while start < len(words) and (words[start].startswith("-") or words[start].rstrip("smh").isdigit()):
                start += 1
        elif word in _PREFIXES or (_ASSIGNMENT.match(word) and start + 1 < len(words)):
            if word == "command" and words[start + 1 : start + 2] in (["-v"], ["-V"]):
                break
            start += 1
        else:
            break
    return [] if words[start : start + 1] and words[start] in _CLOSERS else words[start:]


def _expand(words: list[str], loops: dict[str, list[str]]) -> list[str]:
    """Expand `$f` to every item of its loop, so that a loop counts as touching all of them."""
    expanded: list[str] = []
    for word in words:
        match = _VARIABLE.search(word) if "$" in word else None
        items = loops.get(match[1] or match[3]) if match else None
        if match is None or items is None:
            expanded.append(word)
            continue
        expanded.extend(word[: match.start()] + _trimmed(item, match[2] or "") + word[match.end() :] for item in items)
    return expanded[: _EXPANSION_LIMIT * 4]


def _trimmed(item: str, operation: str) -> str:
    if operation.startswith("%"):
        return item.removesuffix(operation.lstrip("%"))
    return item.rsplit("/", 1)[-1] if operation == "##*/" else item


def _executed(words: list[str], pipeline: int) -> SimpleCommand:
    """Return the command that `find -exec` runs, with `{}` replaced by the search pattern."""
    pattern = next((words[i + 1] for i, w in enumerate(words[:-1]) if w in ("-name", "-iname")), "*")
    inner = words[words.index("-exec") + 1 :]
    kept = (pattern if word == "{}" else word for word in inner if word not in (";", "+"))
    return SimpleCommand(tuple(kept), pipeline=pipeline)
