"""A process whose system call the kernel reports to the guard: its role and the arguments of its call."""

from __future__ import annotations

import contextlib
import os
import resource
import struct

from arise.sandbox.inside.writers import NOBODY, PROGRAM, SHELL

MARK = 10  # RLIMIT_LOCKS, without effect since Linux 2.4
HERE = 0xFFFFFF9C  # AT_FDCWD
MAX_TEXT, MAX_WORDS = 4096, 64


class Asker:
    """One thread, blocked in its system call until the guard answers.

    The permission to write the reward is stored in a resource limit that the kernel does not use: every child inherits
    it, reparented or not, and no process can raise it again.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def role(self) -> int:
        """Return the role of the process, read from its mark."""
        limit: int = resource.prlimit(self.pid, MARK)[1]
        return limit if limit in (NOBODY, PROGRAM) else SHELL

    def mark(self, role: int) -> None:
        """Lower the permissions of the process and of all its future children."""
        resource.prlimit(self.pid, MARK, (role, role))

    @property
    def process(self) -> str:
        """Return the process of this thread, distinct from earlier processes with the same id."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as file:
            leader = next(line.split()[1] for line in file if line.startswith("Tgid:"))
        with open(f"/proc/{leader}/stat", encoding="utf-8", errors="replace") as file:
            return f"{leader} {file.read().rpartition(')')[2].split()[19]}"

    @property
    def name(self) -> str:
        """Return the name of its program."""
        with open(f"/proc/{self.pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def link(self, name: str) -> str:
        """Return the target of one of its links in /proc; "" if there is none."""
        try:
            return os.readlink(f"/proc/{self.pid}/{name}")
        except FileNotFoundError:
            return ""

    def read(self, address: int, size: int) -> bytes:
        """Read from its memory."""
        fd = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        try:
            return os.pread(fd, size, address)
        finally:
            os.close(fd)

    def text(self, address: int) -> str:
        """Read a string from its memory, cut after MAX_TEXT bytes."""
        return os.fsdecode(self.read(address, MAX_TEXT).partition(b"\0")[0])

    def words(self, address: int) -> list[str]:
        """Return the first strings of a null-terminated list in its memory."""
        found = []
        for at in range(MAX_WORDS):
            (pointer,) = struct.unpack("=Q", self.read(address + 8 * at, 8))
            if not pointer:
                break
            found.append(self.text(pointer))
        return found

    def path(self, folder: int, address: int) -> str:
        """Return the absolute path that it refers to, without following links."""
        text = self.text(address)
        if not text.startswith("/"):
            base = self.link("cwd" if folder & 0xFFFFFFFF == HERE else f"fd/{folder & 0xFFFFFFFF}")
            text = f"{base}/{text}" if text else base
        return os.path.normpath("/" + text.lstrip("/"))

    def hands_over(self, inode: int) -> bool:
        """Return whether the program that it starts would inherit the socket with this inode."""
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(OSError):
                if self.link(f"fd/{fd}") == f"socket:[{inode}]":
                    with open(f"/proc/{self.pid}/fdinfo/{fd}", encoding="ascii") as file:
                        flags = next(line.split()[1] for line in file if line.startswith("flags:"))
                    if not int(flags, 8) & os.O_CLOEXEC:
                        return True
        return False


def anybody_else() -> bool:
    """Return whether a process that may not write the reward is alive."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != "1":
            with contextlib.suppress(OSError):
                if Asker(int(name)).role == NOBODY:
                    return True
    return False
