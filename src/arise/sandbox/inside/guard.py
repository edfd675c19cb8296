"""The supervisor of test.sh: only output of test.sh and its own programs counts as the reward.

Code of the attempt runs as the same user, so file modes cannot protect the reward files. Instead the kernel asks this
process about every program start and every open for writing (seccomp user notification, Linux 5.14). A process that may
write the reward receives a socket instead of the file, which no path leads to. The file at the path is never read.
"""

from __future__ import annotations

import _socket
import contextlib
import ctypes
import fcntl
import json
import os
import select
import struct
import sys

from arise.sandbox.inside.asker import HERE, Asker
from arise.sandbox.inside.rewards import Rewards
from arise.sandbox.inside.writers import NOBODY, PROGRAM, SHELL, SYSTEM, OwnTests, Start, role_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SET_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
RECEIVE, SEND, ADD_FD = 0xC0502100, 0xC0182101, 0x40182103
CONTINUE, ADD_AND_SEND, EPERM = 1, 2, 1
NOTIFICATION = struct.Struct("=QIIiIQ6Q")
NOT_STARTED = 126


class BpfProgram(ctypes.Structure):
    """C structure `sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class Guard:
    """Supervise one command — `pid = guard.spawn(command, sink)`, then `serve` when `waiting` is readable."""

    def __init__(self, settings: str) -> None:
        chosen = json.loads(settings)
        self.calls = {int(number): name for number, name in chosen["calls"].items()}
        self.seccomp = chosen["seccomp"]
        self.limits, self.notify = (bytes.fromhex(chosen[name]) for name in ("limits", "notify"))
        self.tests = OwnTests(chosen["tests"])
        self.system = (*SYSTEM, *(f"{path}/" for path in chosen["system"]))
        self.added = frozenset(chosen.get("added", ()))
        """Programs in system folders that are the attempt's."""
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.waiting = select.epoll()
        self.rewards = Rewards(chosen["logs"], self.waiting)
        self.listener = -1
        self.missing = "the command did not start"
        """Why nothing is watched, "" while it is."""

    def spawn(self, command: bytes, output: int, take_on: Callable[[], object]) -> int:
        """Start the command as its user, supervised from its first instruction."""
        ours, theirs = _socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._become(command, output, theirs, take_on)
        theirs.close()
        told, passed, _, _ = ours.recvmsg(200, _socket.CMSG_SPACE(4))
        ours.close()
        if passed:
            self.listener = int.from_bytes(passed[0][2][:4], sys.byteorder)
            self.waiting.register(self.listener, select.EPOLLIN)
            self.missing = ""
        elif told:
            self.missing = told.decode("utf-8", "replace")
        return pid

    def _become(self, command: bytes, output: int, supervisor: _socket.socket, take_on: Callable[[], object]) -> None:
        """Install the filter in the new process and execute the command."""
        try:
            os.setsid()
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            take_on()
            try:
                self._install(self.limits, 0)
                listener = self._listen()
                supervisor.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener))])
            except OSError as error:
                supervisor.sendmsg([f"{error.strerror}".encode()])
            os.execv("/bin/bash", [b"bash", b"-c", command])  # noqa: S606 - the sandbox's command
        finally:
            os._exit(NOT_STARTED)

    def _listen(self) -> int:
        if Asker(0).role != SHELL:
            raise OSError(EPERM, "the limit on file locks is lowered already")
        try:
            return self._install(self.notify, NEW_LISTENER | WAIT_KILLABLE)
        except OSError:  # before Linux 5.19, where a signal can interrupt a call that waits for its answer
            return self._install(self.notify, NEW_LISTENER)

    def _install(self, program: bytes, flags: int) -> int:
        given = BpfProgram(len(program) // 8, program)
        found: int = self.libc.syscall(self.seccomp, SET_FILTER, flags, ctypes.byref(given))
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found

    def serve(self) -> None:
        """Read what was written and answer waiting processes."""
        self.rewards.drain()
        while any(fd == self.listener and event & select.EPOLLIN for fd, event in self.waiting.poll(0)):
            notification = bytearray(NOTIFICATION.size)
            try:
                fcntl.ioctl(self.listener, RECEIVE, notification)
            except OSError:  # the process was killed meanwhile
                continue
            asked, pid, _, number, _, _, *arguments = NOTIFICATION.unpack(notification)
            # Writers ask once more when they are done, so that the next reader of the file finds what they wrote.
            self.rewards.drain()
            self._answer(asked, Asker(pid), self.calls[number], arguments)

    def _answer(self, asked: int, asker: Asker, call: str, arguments: list[int]) -> None:
        refusal, channel, flags = 0, None, 0
        try:
            if call.startswith("exec"):
                self._start(asker, *_program(call, arguments))
            elif call.startswith("rename"):
                self.rewards.rename(asker, *(asker.path(*place) for place in _renamed(call, arguments)))
            elif call.startswith("unlink"):
                self.rewards.remove(asker, asker.path(*_place(call, arguments)))
            elif call.startswith(("open", "creat")):
                flags = _flags(asker, call, arguments)
                channel = self.rewards.open(asker, asker.path(*_place(call, arguments)), flags)
        except (OSError, ValueError, StopIteration, struct.error):  # killed meanwhile, or its memory is not readable
            refusal = EPERM if call.startswith("exec") else 0
        with contextlib.suppress(OSError):
            if channel is not None:
                kept = flags & os.O_CLOEXEC
                added = struct.pack("=QIIII", asked, ADD_AND_SEND, channel.fileno(), 0, kept)
                fcntl.ioctl(self.listener, ADD_FD, added)
            else:
                answer = struct.pack("=QqiI", asked, 0, -refusal, 0 if refusal else CONTINUE)
                fcntl.ioctl(self.listener, SEND, answer)
        if channel is not None:
            channel.close()

    def _start(self, asker: Asker, folder: int, path: int, words: int) -> None:
        """Mark a program as it starts; one whose arguments cannot be read may not write."""
        role = asker.role
        if role == NOBODY:
            return
        allowed, image = NOBODY, "a program"
        try:
            if self.rewards.may_write(asker):
                image = asker.path(folder, path)
                start = Start(image, asker.words(words), asker.link("cwd"), asker.link("fd/0"))
                allowed = NOBODY if self._is_theirs(image) else min(role, role_of(start, self.tests, self.system))
        finally:
            if allowed == NOBODY:
                self.rewards.hand_over(asker, image)
            if allowed != role:
                asker.mark(allowed)
            if allowed == PROGRAM:
                self.rewards.programs.add(asker.process)

    def _is_theirs(self, image: str) -> bool:
        """Return whether a program in a system folder belongs to the attempt, directly or through a link."""
        real = os.path.realpath(image)
        return bool({image, real} & self.added) or (image.startswith(self.system) and not real.startswith(self.system))

    def report(self) -> bytes:
        """Return as JSON what was written and by which process, or why that is unknown."""
        return json.dumps({"missing": self.missing, **self.rewards.report()}).encode("ascii")

    def close(self) -> None:
        """Release all resources; a process that still waits for an answer receives an error."""
        self.rewards.close()
        self.waiting.close()
        if self.listener >= 0:
            os.close(self.listener)


def _place(call: str, arguments: list[int]) -> tuple[int, int]:
    """Return the folder that a path starts from, and the path."""
    return (arguments[0], arguments[1]) if call in ("openat", "openat2", "unlinkat") else (HERE, arguments[0])


def _renamed(call: str, arguments: list[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    if call == "rename":
        return (HERE, arguments[0]), (HERE, arguments[1])
    return (arguments[0], arguments[1]), (arguments[2], arguments[3])


def _program(call: str, arguments: list[int]) -> tuple[int, int, int]:
    """Return the folder, path and arguments of a program that starts."""
    return (HERE, arguments[0], arguments[1]) if call == "execve" else (arguments[0], arguments[1], arguments[2])


def _flags(asker: Asker, call: str, arguments: list[int]) -> int:
    if call == "openat2":
        return int(struct.unpack("=Q", asker.read(arguments[2], 8))[0])
    return os.O_WRONLY | os.O_CREAT | os.O_TRUNC if call == "creat" else arguments[2 if call == "openat" else 1]
