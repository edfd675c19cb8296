"""Classify the observation of a call: failed, refused, empty, partial, or a list of files."""

import re
from dataclasses import dataclass
from functools import lru_cache

from arise.analyst.acts import INSPECTIONS, Op
from arise.types import Observation

_HEAD, _TAIL = 15_000, 5_000
"""Only the beginning and the end of a long answer are read, because programs report errors last."""
_FAILED = re.compile(
    r"^(?:[\w./+\[\]-]+:\s+){0,3}"
    r"(?:error|fatal|usage|exception|traceback \(most recent|fail(?:ed|ure)?)\b(?!\W{0,3}0\b)"
    r"|command not found|no such file or directory|permission denied"
    r"|(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code)[\"'=:>\s]{1,4}[1-9]",
    re.IGNORECASE | re.MULTILINE,
)
_READ_FAILED = re.compile(
    r"\s*(?:[\w./-]+: ){1,3}.{0,200}(?:no such file|permission denied|is a directory|not found|cannot)", re.IGNORECASE
)
_MISSING = re.compile(
    r"command not found|no module named|modulenotfounderror|not installed|: not found\s*$"
    r"|cannot find (?:package|module)|executable file not found|unable to locate package",
    re.IGNORECASE | re.MULTILINE,
)
_CALL_SHAPE = (
    r"usage:|unrecogni[sz]ed|illegal option|unknown (?:option|argument|flag|command|parameter)"
    r"|(?:missing|requires?) (?:an? |the |required )?(?:argument|operand|option|value|parameter)"
    r"|too (?:few|many) arguments"
)
_REFUSED_CHECK = re.compile(_CALL_SHAPE, re.IGNORECASE)
_REFUSED = re.compile(
    _CALL_SHAPE + r"|\bunknown \w+|\binvalid\b|\bexpect(?:s|ed)\b|\brequired\b|\bmust be\b|\bnot a valid\b|unsupported"
    r"|\bbad \w+|\bschema\b|validation error|(?:cannot|could not|failed to) parse|parse error|malformed|choose from"
    r"|allowed values|type ?error|value ?error|\bformat\b",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\b(?:expect(?:s|ed)|must be|choose from|allowed values|one of|did you mean|should be|usage)\b", re.IGNORECASE
)
_PARTIAL = re.compile(
    r"(?<![\w-])warn(?:ing)?(?=:)|\btruncated\b|\bpartial(?:ly)?\b|\bskipp(?:ed|ing)\b|\bincomplete\b"
    r"|\bomitted\b|\btest[- ]mode\b"
    r"|\bno (?:rows|records|results|data|matches|output|content)\b|\b0 (?:rows|records|results|lines|files)\b"
    r"|\bplaceholder\b|\bempty (?:result|response|output|file)\b",
    re.IGNORECASE,
)
_NEGATED_PARTIAL = re.compile(r"\b(?:no|0|without) (?:warnings?|skipped|errors?)\b|\bskipped[:= ]+0\b", re.IGNORECASE)
_WROTE = re.compile(
    r"\b(?:wrote|written|saved|created|generated|exported|overwrote|stored)(?: (?:to|as|in|into|file|the file))?"
    r"[:\s]\s?[`'\"]?([\w./-]{1,200}\.[A-Za-z]\w{0,5})\b",
    re.IGNORECASE,
)
_NUMBERED_LINE = re.compile(r"^[ \t]*\d{1,7}[:|\t\u2192].*$", re.MULTILINE)
"""A line of the file that an editor shows after a change; errors that it mentions are the file's own text."""
_LONG_ROW = re.compile(r"[-dlbcps][rwxsStT-]{9}[.+@]?\s")
_NAME = re.compile(r"[\w@+~%./-]+$")
_EMPTY_MARKS = frozenset(("", "(no output)", "<empty>", "(empty)", "no output", "done", "null", "none", "[]", "{}"))


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """One parsed observation; `refused` means rejected for its arguments, `partial` names the marker found."""

    text: str = ""
    failed: bool = False
    refused: bool = False
    missing: bool = False
    hinted: bool = False
    empty: bool = False
    partial: str = ""


def read_answer(observation: Observation, ops: frozenset[Op]) -> ParsedAnswer:
    """Parse an observation, given what the call did: errors mentioned in a log that was read are not failures."""
    text = observation.text
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    return _read(text, observation.error, observation.truncated, ops)


@lru_cache(maxsize=1024)
def _read(text: str, error: bool, truncated: bool, ops: frozenset[Op]) -> ParsedAnswer:
    empty = text.strip().lower() in _EMPTY_MARKS
    only_looks = bool(ops) and ops <= INSPECTIONS
    if only_looks:
        nothing_found = Op.SEARCH in ops and empty
        failed = (error and not nothing_found) or bool(_READ_FAILED.match(text))
        partial = "truncated" if truncated else ""
        return ParsedAnswer(text, failed, failed and bool(_REFUSED_CHECK.search(text)), False, False, empty, partial)
    edited = Op.WRITE in ops and not ops & {Op.RUN, Op.CHECK}
    failed = error or bool(_FAILED.search(_NUMBERED_LINE.sub("", text) if edited else text))
    missing = bool(_MISSING.search(text))
    pattern = _REFUSED_CHECK if Op.CHECK in ops else _REFUSED
    refused = failed and not missing and bool(pattern.search(text)) and "no such file" not in text.lower()
    mark = None if failed or Op.CHECK in ops else _PARTIAL.search(_NEGATED_PARTIAL.sub("", text))
    partial = mark.group().lower() if mark else "truncated" if truncated else ""
    return ParsedAnswer(text, failed, refused, missing, bool(_HINT.search(text)), empty, partial)


def missing_line(text: str) -> str:
    """Return the first line that says that a program or module is missing; empty if none does."""
    match = _MISSING.search(text)
    return text[text.rfind("\n", 0, match.start()) + 1 : match.end()] if match else ""


def files_reported_written(text: str) -> list[str]:
    """Return the files that a program reports it wrote."""
    return _WROTE.findall(text)[:64]


def listed_files(text: str, folder: str, *, alone: bool) -> list[str]:
    """Return the paths in a listing; if other output is mixed in, only lines that are a single file name count."""
    found: list[str] = []
    prefix = folder
    for line in text.splitlines():
        row = line.strip().lstrip("│├└─ ").strip()
        if row.endswith(":") and " " not in row:
            prefix = row[:-1]
            continue
        if row.startswith("total "):
            continue
        names = row.split()
        if _LONG_ROW.match(row):
            names = names[8:9]
        elif not alone and (len(names) != 1 or "." not in row):
            continue
        for name in names:
            plain = name.rstrip("*")  # the marker of `ls -F` for programs
            if _NAME.match(plain) and plain not in (".", ".."):
                inside = prefix and not plain.startswith((prefix, "/", "./"))
                found.append(f"{prefix.rstrip('/')}/{plain}" if inside else plain)
    return found[:2000]
