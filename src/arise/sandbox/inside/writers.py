"""Decide which programs started by test.sh may write the reward, by their path and arguments.

Executed only inside a verifier's sandbox, with `guard.py`. A program that could run a file of the attempt may not
write: this is a list of those that cannot, so unknown programs may not either.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

NOBODY, PROGRAM, SHELL = 0, 1, 2
"""NOBODY may not write, and neither may what it starts. A PROGRAM may, but not what it starts. What a SHELL starts is
judged anew."""
TEST = "test.sh"
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
WRAPPERS = ("env", "timeout", "nice", "nohup", "stdbuf", "setsid", "ionice", "time", "chronic")
"""Programs that start the program named in their arguments; that program is then judged."""
TOOLS = frozenset(
    {
        *("[", "base64", "basename", "bc", "cat", "chmod", "chown", "cmp", "column", "comm", "cp", "cut", "date", "dd"),
        *("diff", "dirname", "echo", "egrep", "expr", "false", "fgrep", "fold", "grep", "head", "install", "jq", "ln"),
        *("md5sum", "mkdir", "mktemp", "mv", "nl", "numfmt", "od", "paste", "printenv", "printf", "readlink"),
        *("realpath", "rev", "rm", "rmdir", "seq", "sha1sum", "sha256sum", "sleep", "sort", "stat", "sync", "tac"),
        *("tail", "tee", "test", "touch", "tr", "true", "uniq", "wc", "xxd"),
    }
)
SCRIPTED_TOOLS = ("awk", "gawk", "mawk", "nawk", "sed")
"""Also tools, unless a file holds their instructions."""
SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh")
PYTHONS, OTHERS = ("python", "pypy"), ("perl", "ruby", "node")
PYTEST = ("pytest", "py.test")
MAX_TEXT_BYTES, MAX_TEXTS = 1024 * 1024, 1000
_VERSION = re.compile(r"[-\d.]*$")
_PIPED = re.compile(
    rb"\|\s*(?:\S*/)?(?:python[\d.]*|pypy3?|perl|ruby|node|(?:ba|da|z|k|a)?sh)(?:\s+-\w*)*\s*(?:$|[;|&)])", re.M
)

INLINE, STDIN, MODULE, UNKNOWN = "-inline", "-stdin", "-module", "-unknown"


class OwnTests:
    """The task's own tests, read from a folder that no process can change."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._others_write: bool | None = None
        self._pipes_code: bool | None = None

    def hold(self, path: str) -> bool:
        """Return whether a path is inside the tests folder."""
        return path.startswith(self.folder + "/")

    @property
    def others_write(self) -> bool:
        """Return whether any file besides test.sh mentions a reward and so may write it."""
        if self._others_write is None:
            self._others_write = any(b"reward" in text for text in self._texts())
        return self._others_write

    @property
    def pipe_code(self) -> bool:
        """Return whether test.sh pipes code into an interpreter, which may be code of the attempt."""
        if self._pipes_code is None:
            text = _text(os.path.join(self.folder, TEST))
            self._pipes_code = any(
                _PIPED.search(line) for line in text.splitlines() if not line.lstrip().startswith(b"#")
            )
        return self._pipes_code

    def _texts(self) -> list[bytes]:
        paths = [
            os.path.join(parent, name)
            for parent, _, names in os.walk(self.folder)
            for name in names
            if os.path.join(parent, name) != os.path.join(self.folder, TEST)
        ]
        return [_text(path) for path in sorted(paths)[:MAX_TEXTS]]


def _text(path: str) -> bytes:
    """Return the content of a small file; empty for any other."""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_TEXT_BYTES) if os.fstat(file.fileno()).st_size <= MAX_TEXT_BYTES else b""
    except OSError:
        return b""


def code_of(argv: list[str], inline: str, module: str = "", valued: str = "", personal: str = "") -> str:
    """Return where an interpreter gets its code: a script path, INLINE, STDIN, MODULE or UNKNOWN.

    The letters are its options that hold code, that name a module, that take another value, and that make it first read
    files of the home folder, which programs of the attempt can write.
    """
    words = iter(argv[1:])
    for word in words:
        if word == "-":
            return STDIN
        if word == "--":
            return next(words, STDIN)
        if word[:1] not in ("-", "+"):
            return word
        if word.startswith("--"):
            if personal and word == "--login":
                return UNKNOWN
            continue
        for at, letter in enumerate(word[1:], 2):
            if letter in personal:
                return UNKNOWN
            if letter in inline:
                return INLINE
            if letter in module:
                return MODULE
            if letter in valued:
                if at == len(word):
                    next(words, "")
                break
    return STDIN


def _simple_code(argv: list[str]) -> str:
    """Return the source of the code of other interpreters, recognising only their simplest uses."""
    if len(argv) < 2:
        return STDIN
    return INLINE if argv[1] in ("-e", "-E") else UNKNOWN if argv[1].startswith("-") else argv[1]


class Start(NamedTuple):
    """A starting program: its absolute path, arguments, working directory and standard input."""

    image: str
    argv: list[str]
    cwd: str
    stdin: str


def role_of(start: Start, tests: OwnTests, system: tuple[str, ...] = SYSTEM) -> int:
    """Return the role of a program that a SHELL starts."""
    name = os.path.basename(start.image)
    if tests.hold(start.image):
        return SHELL if _interpreter_named(start.image) in SHELLS else PROGRAM
    if not start.image.startswith(system):
        return NOBODY
    if name in WRAPPERS:
        return SHELL
    if name in TOOLS:
        return PROGRAM
    if name in SCRIPTED_TOOLS:
        return NOBODY if any(re.match(r"-\w*[fE]|--(fi|ex)", word) for word in start.argv[1:]) else PROGRAM
    if name.startswith(PYTEST):
        return PROGRAM if tests.others_write else NOBODY
    if name in SHELLS:
        return _by_code(code_of(start.argv, "c", "", "oO", "li"), SHELL, start, tests)
    language = _VERSION.sub("", name)
    if language in PYTHONS:
        return _by_code(code_of(start.argv, "c", "m", "WX"), PROGRAM, start, tests)
    return _by_code(_simple_code(start.argv), PROGRAM, start, tests) if language in OTHERS else NOBODY


def _interpreter_named(script: str) -> str:
    """Return the interpreter named in the first line of a script."""
    words = _text(script).partition(b"\n")[0].decode("utf-8", "replace").split()
    return os.path.basename(words[-1]) if words and words[0].startswith("#!") else ""


def _by_code(code: str, role: int, start: Start, tests: OwnTests) -> int:
    """Return the role of an interpreter by the source of its code."""
    if code == INLINE:
        return role
    if code == STDIN:
        # A here-document in test.sh arrives through a pipe, or a file that bash has already removed.
        document = re.fullmatch(r"pipe:.*|/tmp/.* \(deleted\)", start.stdin)
        return role if tests.hold(start.stdin) or (document and not tests.pipe_code) else NOBODY
    own = code == MODULE or (code != UNKNOWN and tests.hold(os.path.normpath(os.path.join(start.cwd, code))))
    return role if own and (role == SHELL or tests.others_write) else NOBODY
