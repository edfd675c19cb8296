"""Infer what a shell command does to files, from common programs and conventions only."""

import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from arise.analyst.acts import NUMBER, Act, Op, backup_like, check_like, path_like
from arise.analyst.shell import SimpleCommand, parse
from arise.analyst.vocabulary import vocabulary

CACHED_LENGTH = 500  # rollouts often repeat short commands; long ones contain scripts and are not cached
_VIEWERS = vocabulary("viewers")
_SCRIPT_FILTERS = vocabulary("script_filters")
_FILTERS = vocabulary("filters") | _SCRIPT_FILTERS
_SHOWS = _VIEWERS | _FILTERS
_LISTERS = vocabulary("listers")
_SEARCHERS = vocabulary("searchers")
_NEUTRAL = vocabulary("neutral")
_INTERPRETERS = vocabulary("interpreters")
_FINISHERS = vocabulary("finishers")
_BUILDERS = vocabulary("builders")
_INSTALLERS = vocabulary("installers")
_OUTPUT_OPTIONS = vocabulary("output_options")
_TAKES_VALUE = {
    "head": ("-n", "-c"), "tail": ("-n", "-c"), "cut": ("-d", "-f", "-c", "-b"), "sort": ("-t", "-k"),
    "awk": ("-F", "-v", "-f"), "gawk": ("-F", "-v", "-f"), "mawk": ("-F", "-v", "-f"),
    "column": ("-s",), "sed": ("-e", "-f"), "jq": ("-f",),
    "grep": ("-A", "-B", "-C", "-m", "-e", "-f"), "rg": ("-A", "-B", "-C", "-m", "-e", "-g", "-t"),
}  # fmt: skip
_SUBMIT_ECHO = re.compile(r"COMPLETE_TASK|SUBMIT_FINAL")
_CODE_WRITE = re.compile(
    r"""open\(\s*['"]([^'"\n]{1,200})['"]\s*,\s*(?:mode\s*=\s*)?['"][wax]|to_(?:csv|json|excel)\(\s*['"]([^'"\n]{1,200})['"]"""
    r"""|['"]([^'"\n]{1,200})['"]\)\.write_(?:text|bytes)"""
)
_CODE_FILE = re.compile(r"""['"]([\w./*-]{1,200}\.[A-Za-z]\w{0,5})['"]""")


def acts_of_shell(command: str) -> tuple[Act, ...]:
    """Return every act of one command line, in order of execution."""
    return _acts_cached(command) if len(command) <= CACHED_LENGTH else tuple(_acts_of(command))


@lru_cache(maxsize=8192)
def _acts_cached(command: str) -> tuple[Act, ...]:
    return tuple(_acts_of(command))


def _acts_of(command: str) -> list[Act]:
    commands = parse(command)
    acts: list[Act] = []
    for i, simple in enumerate(commands):
        following = [c for c in commands[i + 1 : i + 8] if c.pipeline == simple.pipeline]
        kept = bool(simple.outputs) or any(c.outputs or _program(c)[0] not in _SHOWS for c in following)
        acts.extend(_acts(simple, flows_on=kept))
    return acts


def _program(command: SimpleCommand) -> tuple[str, tuple[str, ...]]:
    """Return the program and its arguments; a script run by an interpreter counts as the program."""
    words = command.words
    if not words:
        return "", ()
    name, arguments = words[0].rsplit("/", 1)[-1] or words[0], words[1:]
    if name in _INTERPRETERS and arguments:
        if arguments[0] == "-m" and len(arguments) > 1:
            return arguments[1], arguments[2:]
        if not arguments[0].startswith("-"):
            return arguments[0].rsplit("/", 1)[-1], arguments[1:]
    return name, arguments


def _acts(command: SimpleCommand, *, flows_on: bool) -> Iterator[Act]:
    program, arguments = _program(command)
    text = command.text

    def make(op: Op, paths: Iterable[str]) -> list[Act]:
        return [Act(op, path, program, text) for path in paths]

    read_as = Op.USE if flows_on else Op.READ
    if "=" in program:
        return
    if program in _NEUTRAL:
        if _SUBMIT_ECHO.search(text):
            yield Act(Op.FINISH, "", program, text)
    elif program in _FINISHERS or (program == "exit" and not arguments):
        yield Act(Op.FINISH, "", program, text)
    elif program in ("cp", "mv", "install", "rsync", "scp", "ln"):
        yield from _copies(program, arguments, text)
    elif program in ("rm", "unlink", "shred", "rmdir"):
        yield from make(Op.DELETE, _plain(arguments))
    elif program in ("touch", "truncate", "tee"):
        yield from make(Op.WRITE, [path for path in _plain(arguments) if not path.startswith("/dev/")])
    elif program == "git":
        yield from _git(arguments, text)
    elif _probes(program, arguments, command.code):
        yield Act(Op.PROBE, "", program, text)
    elif program in _INSTALLERS and any(a in ("install", "add", "i", "sync") for a in arguments[:3]):
        yield Act(Op.INSTALL, "", program, text)
    elif program in ("diff", "cmp") or _checks(program, arguments):
        yield from make(Op.CHECK, _plain(arguments) or [""])
    elif program in _LISTERS:
        yield from make(Op.LIST, _places(program, arguments) or [""])
    elif program in _SEARCHERS:
        yield from make(Op.USE if flows_on else Op.SEARCH, _operands(program, arguments) or [""])
    elif program in _VIEWERS and command.outputs and all(map(backup_like, command.outputs)):
        yield from make(Op.BACKUP, _operands(program, arguments))
    elif program in _SHOWS:
        yield from _filtered(program, arguments, command, read_as, text)
    elif program:
        yield from _runs(program, arguments, command, text)
    yield from make(Op.WRITE, command.outputs)


def _plain(arguments: tuple[str, ...]) -> list[str]:
    """Return the arguments that are neither options nor numbers."""
    return [a for a in arguments if a and a[0] != "-" and not NUMBER.match(a)]


def _operands(program: str, arguments: tuple[str, ...]) -> list[str]:
    """Return the files of a viewer, filter or search, without option values and a leading script or expression."""
    valued = _TAKES_VALUE.get(program, ())
    words = [w for before, w in itertools.pairwise(("", *arguments)) if w and w[0] != "-" and before not in valued]
    scripted = program in _SCRIPT_FILTERS or program in _SEARCHERS
    given = any(a in ("-e", "-f") for a in arguments)
    return words[1:] if scripted and not given else words


def _places(program: str, arguments: tuple[str, ...]) -> list[str]:
    """Return the folders that a listing reads; the working directory itself needs no name."""
    paths = [path for path in _plain(arguments) if path not in (".", "./", "]", "]]")]
    return paths[:1] if program == "find" and arguments[:1] == tuple(paths[:1]) else [] if program == "find" else paths


def _checks(program: str, arguments: tuple[str, ...]) -> bool:
    if program in _BUILDERS:
        return any(check_like(argument) for argument in arguments[:2])
    if program in ("md5sum", "sha1sum", "sha256sum"):
        return "-c" in arguments or "--check" in arguments
    return program not in _LISTERS and program not in _FILTERS and check_like(program)


def _probes(program: str, arguments: tuple[str, ...], code: str) -> bool:
    if program in ("which", "type", "command", "hash", "man", "help", "info", "whatis"):
        return True
    if program in _INSTALLERS and arguments[:1] in (("show",), ("list",), ("freeze",), ("search",)):
        return True
    if arguments[:1] == ("-c",) and len(arguments) > 1 and re.fullmatch(r"\s*import [\w., ]+;?\s*", arguments[1]):
        return True
    if program in _SHOWS or program in _SEARCHERS or program in _LISTERS or code:
        return False
    return any(a in ("--help", "-h", "--version", "--usage") for a in arguments)


def _copies(program: str, arguments: tuple[str, ...], text: str) -> Iterator[Act]:
    paths = _plain(arguments)
    if len(paths) < 2:
        return
    *sources, target = paths
    aside = backup_like(target)
    for source in sources:  # a moved file keeps its content under the new name
        yield Act(Op.BACKUP, source, program, text)
    if not aside:
        folder = target.endswith("/") or len(sources) > 1
        names = [f"{target.rstrip('/')}/{source.rsplit('/', 1)[-1]}" for source in sources] if folder else [target]
        yield from (Act(Op.WRITE, name, program, text) for name in names)


def _git(arguments: tuple[str, ...], text: str) -> Iterator[Act]:
    verb = next(iter(_plain(arguments)), "")
    paths = _plain(arguments)[1:]
    if verb in ("commit", "stash", "tag", "branch"):
        yield Act(Op.BACKUP, "*", "git", text)
    elif verb in ("status", "ls-files", "ls-tree"):
        yield Act(Op.LIST, "", "git", text)
    elif verb in ("diff", "show", "log", "blame"):
        yield from (Act(Op.READ, path, "git", text) for path in paths or [""])
    elif verb == "grep":
        yield Act(Op.SEARCH, "", "git", text)
    elif verb in ("rm", "clean"):
        yield from (Act(Op.DELETE, path, "git", text) for path in paths)
    else:
        yield Act(Op.RUN, "", "git", text)


def _filtered(
    program: str, arguments: tuple[str, ...], command: SimpleCommand, read_as: Op, text: str
) -> Iterator[Act]:
    """Return the acts of viewers and filters: show a file, pipe it, or (`sed -i`, `sort -o`) change it in place."""
    paths = [*_operands(program, arguments), *command.inputs]
    in_place = next((a for a in arguments if program == "sed" and (a.startswith("-i") or a == "--in-place")), "")
    if in_place:
        for path in paths:
            if len(in_place) > 2 and in_place != "--in-place":
                yield Act(Op.BACKUP, path, program, text)
            yield Act(Op.USE, path, program, text)
            yield Act(Op.WRITE, path, program, text)
        return
    written = _option_outputs(arguments) if program == "sort" else []
    for path in paths:
        if path not in written:
            yield Act(Op.USE if written else read_as, path, program, text)
    for path in written:
        yield Act(Op.WRITE, path, program, text)
    if not paths and not command.code and not written:
        yield Act(Op.RUN, "", program, text)


def _option_outputs(arguments: tuple[str, ...]) -> list[str]:
    found = [value for option, value in itertools.pairwise(arguments) if option in _OUTPUT_OPTIONS]
    for argument in arguments:
        option, _, value = argument.partition("=")
        if value and (option in _OUTPUT_OPTIONS or option == "of"):
            found.append(value)
    return found


def _runs(program: str, arguments: tuple[str, ...], command: SimpleCommand, text: str) -> Iterator[Act]:
    """Return the acts of any other program: file arguments are used, `-o` targets written, inline code searched."""
    yield Act(Op.RUN, "", program, text)
    written = _option_outputs(arguments)
    code = command.code or next((b for a, b in itertools.pairwise(arguments) if a in ("-c", "-e")), "")
    if code and (program in _INTERPRETERS or not command.words):
        written += [next(filter(None, groups)) for groups in _CODE_WRITE.findall(code)]
        used = [path for path in _CODE_FILE.findall(code) if path not in written]
    else:
        values = [a.partition("=")[2] if "=" in a else a for a in arguments if a != code]
        used = [value for value in values if value and value[0] != "-" and value not in written]
    for path in (*used, *command.inputs):
        if not NUMBER.match(path):
            yield Act(Op.USE, path, program, text)
    if program == "perl" and any(a.startswith(("-pi", "-i")) for a in arguments):
        written += [path for path in used if path_like(path)]
    for path in written:
        yield Act(Op.WRITE, path, program, text)
