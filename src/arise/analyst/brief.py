"""Parse an instruction by simple rules: files and their roles, constraints, the kind of request."""

import re
from dataclasses import dataclass
from functools import lru_cache

from arise.analyst.acts import check_like, path_like
from arise.analyst.vocabulary import vocabulary

_PIECE = re.compile(r"`([^`\n]{1,200})`|([\w./*-]+)|([!?;:\n]+)")
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,5}$")
_OUT_WORDS = vocabulary("giving")
_OUT_PARTICLES = vocabulary("giving_to")
_IN_WORDS = vocabulary("taking")
_NOT_FILES = frozenset(("e.g", "i.e", "etc.", "vs.", "e.g.", "i.e."))
_GUIDE_WORDS = vocabulary("guide_words")
_GUIDE_ENDINGS = frozenset(("", "md", "txt", "rst", "pdf", "html", "adoc", "docx", "json", "yaml", "yml", "toml"))
_SCRIPT_ENDINGS = frozenset(("sh", "py", "pl", "rb", "js", "ts", "r", "exe", "bin", "mk", "c", "go", "rs", "java"))
_CONSTRAINT = re.compile(
    r"\b(?:must|shall|exactly|only|never|do not|don't|at least|at most|no more than|without|ensure|required|should|"
    r"each|sorted|keep)\b",
    re.IGNORECASE,
)
_LITERAL = re.compile(
    r"`([^`\n]{1,80})`|\"([^\"\n]{1,80})\"|([\w-]+\.[A-Za-z]\w{1,5})\b|(?<!\w)(--?[A-Za-z][\w-]+)|\b(\d+(?:\.\d+)?)\b"
)
_BROKEN = re.compile(
    r"\b(?:broken|bugs?|crash(?:es|ed|ing)?|fails|failing|debug|regression"
    r"|(?:does not|doesn't) (?:work|run|build|compile|start)"
    r"|(?:fix|repair)\b[^.\n]{0,40}\b(?:build|script|program|tests?|code|function|command|service|pipeline|error))\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\b(?:total|sum|average|mean|median|count|how many|number of|percentage|proportion|"
    r"compute|calculate|maximum|minimum)\b",
    re.IGNORECASE,
)
_UNITS = re.compile(
    r"\bunits?\b(?! tests?\b)|\bcurrenc(?:y|ies)\b|\btime ?zones?\b|\b(?:metres?|meters?|feet|foot|inch(?:es)?|"
    r"kilomet(?:re|er)s?|miles?|kilograms?|pounds?|celsius|fahrenheit|kelvin|euros?|dollars?|utc|gmt|litres?|gallons?)\b",
    re.IGNORECASE,
)
_ALL_FILES = re.compile(
    r"\b(?:all|each|every|both|several)\b(?: of)?(?: the| these| your)?(?: [\w.*]+){0,2}? "
    r"(?:files?|inputs?|documents?|tables?|logs?|datasets?|images?|parts)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Brief:
    """A parsed instruction — inputs `("in.csv",)`, outputs `("out.csv",)`, checks `("check",)`."""

    text: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    guides: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    constraints: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each explicit constraint with the literals (names, numbers, options) that would show it was addressed."""
    broken: bool = False
    figure: bool = False
    units: bool = False
    all_files: bool = False


def clean_path(path: str) -> str:
    """Normalise a path, so that `./in.csv` and `in.csv` are one file."""
    while path.startswith("./"):
        path = path[2:]
    return path.rstrip("/") or path


def ending(path: str) -> str:
    """Return the extension in lower case; empty if there is none."""
    name = path.rsplit("/", 1)[-1]
    return name.rpartition(".")[2].lower() if "." in name.strip(".") else ""


@lru_cache(maxsize=4096)
def guide_like(path: str) -> bool:
    """Return whether a file's name suggests instructions for the work, e.g. `README.md`, `docs/format.txt`."""
    stem = path.rsplit("/", 1)[-1].lower()
    words = re.split(r"[^a-z]+", stem)
    return ending(path) in _GUIDE_ENDINGS and any(word in _GUIDE_WORDS for word in words)


@lru_cache(maxsize=4096)
def runnable_check(path: str) -> bool:
    """Return whether a file's name suggests a runnable check, e.g. `check`, `tests/run_tests.sh`."""
    return check_like(path) and (ending(path) in _SCRIPT_ENDINGS or ending(path) == "")


def data_like(path: str) -> bool:
    """Return whether a file holds data to process: it has an extension and is no guide, check or script."""
    return (
        bool(ending(path)) and ending(path) not in _SCRIPT_ENDINGS and not guide_like(path) and not runnable_check(path)
    )


@lru_cache(maxsize=1024)
def read_brief(instruction: str) -> Brief:
    """Parse one instruction; leave empty what the rules cannot determine."""
    inputs, outputs, checks = _files(instruction)
    return Brief(
        text=instruction,
        inputs=tuple(path for path in inputs if data_like(path) and path not in outputs),
        outputs=outputs,
        guides=tuple(path for path in inputs if guide_like(path) and path not in outputs),
        checks=checks,
        constraints=_constraints(instruction),
        broken=bool(_BROKEN.search(instruction)),
        figure=bool(_FIGURE.search(instruction)),
        units=bool(_UNITS.search(instruction)),
        all_files=bool(_ALL_FILES.search(instruction)),
    )


def _files(instruction: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return file names by role, set by the last output (`to`, `write`) or input word (`from`, `read`) before them."""
    inputs: dict[str, None] = {}
    outputs: dict[str, None] = {}
    checks: dict[str, None] = {}
    giving = 0  # 2 after a verb ("write"); 1 after a particle ("according to"), which does not make a guide an output
    for quoted, word, stop in _PIECE.findall(instruction[:20_000]):
        if stop or word == ".":
            giving *= stop[:1] == ":"
            continue
        for piece in quoted.split() if quoted else (word,):
            name = clean_path(piece.rstrip(".,"))
            if (quoted or piece.startswith("./")) and runnable_check(name):
                checks[name] = None
            elif _is_file(name):
                if runnable_check(name):
                    checks[name] = None
                else:
                    (outputs if giving > guide_like(name) else inputs)[name] = None
            elif name.lower() in _OUT_WORDS:
                giving = 2
            elif name.lower() in _OUT_PARTICLES:
                giving = max(giving, 1)
            elif name.lower() in _IN_WORDS:
                giving = 0
            if piece.endswith(".") and not quoted:
                giving = 0  # the sentence ends here
    return tuple(inputs), tuple(outputs), tuple(checks)


def _is_file(name: str) -> bool:
    return (
        path_like(name)
        and not name.startswith("//")
        and name.lower() not in _NOT_FILES
        and bool(_EXTENSION.search(name))
    )


def _constraints(instruction: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return sentences and list items that state an obligation, each with its literals."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for sentence in re.split(r"(?<=[.;!?])\s+|\n+", instruction[:20_000]):
        if _CONSTRAINT.search(sentence):
            literals = tuple(dict.fromkeys(next(filter(None, groups)) for groups in _LITERAL.findall(sentence)))
            found.append((sentence.strip(), literals))
    return tuple(found)
