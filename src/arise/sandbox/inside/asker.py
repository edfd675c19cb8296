"""A process that the kernel asks the guard about: its mark, and what it means by the arguments of its call."""

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
    """One thread, blocked in its call until it is answered.

    Who may write the reward is marked on each process, in a limit that the kernel does not use: every child inherits
    it, whoever its parent becomes, and nobody can raise it again.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @property
    def role(self) -> int:
        """What it may do, by its mark."""
        limit: int = resource.prlimit(self.pid, MARK)[1]
        return limit if limit in (NOBODY, PROGRAM) else SHELL

    def mark(self, role: int) -> None:
        """Lowers what it, and every process that it will start, may do."""
        resource.prlimit(self.pid, MARK, (role, role))

    @property
    def process(self) -> str:
        """The process that this thread belongs to, told apart from an earlier one of the same number."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as file:
            leader = next(line.split()[1] for line in file if line.startswith("Tgid:"))
        with open(f"/proc/{leader}/stat", encoding="utf-8", errors="replace") as file:
            return f"{leader} {file.read().rpartition(')')[2].split()[19]}"

    @property
    def name(self) -> str:
        """The name of its program."""
        with open(f"/proc/{self.pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def link(self, name: str) -> str:
        """Where one of its links in /proc leads, "" where there is none."""
        try:
            return os.readlink(f"/proc/{self.pid}/{name}")
        except FileNotFoundError:
            return ""

    def read(self, address: int, size: int) -> bytes:
        """A piece of its memory."""
        fd = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY)
        try:
            return os.pread(fd, size, address)
        finally:
            os.close(fd)

    def text(self, address: int) -> str:
        """A text in its memory, cut after MAX_TEXT bytes."""
        return os.fsdecode(self.read(address, MAX_TEXT).partition(b"\0")[0])

    def words(self, address: int) -> list[str]:
        """The first of its texts in a list that ends with a null pointer."""
        found = []
        for at in range(MAX_WORDS):
            (pointer,) = struct.unpack("=Q", self.read(address + 8 * at, 8))
            if not pointer:
                break
            found.append(self.text(pointer))
        return found

    def path(self, folder: int, address: int) -> str:
        """The absolute path that it means, without following links."""
        text = self.text(address)
        if not text.startswith("/"):
            base = self.link("cwd" if folder & 0xFFFFFFFF == HERE else f"fd/{folder & 0xFFFFFFFF}")
            text = f"{base}/{text}" if text else base
        return os.path.normpath("/" + text.lstrip("/"))

    def hands_over(self, inode: int) -> bool:
        """Whether the program that it starts now would find the socket with this inode open."""
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(OSError):
                if self.link(f"fd/{fd}") == f"socket:[{inode}]":
                    with open(f"/proc/{self.pid}/fdinfo/{fd}", encoding="ascii") as file:
                        flags = next(line.split()[1] for line in file if line.startswith("flags:"))
                    if not int(flags, 8) & os.O_CLOEXEC:
                        return True
        return False


def anybody_else() -> bool:
    """Whether any process lives that may not write the reward."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and name != "1":
            with contextlib.suppress(OSError):
                if Asker(int(name)).role == NOBODY:
                    return True
    return False
