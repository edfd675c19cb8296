"""The reward files of one run of test.sh, as written by permitted processes."""

from __future__ import annotations

import _socket
import contextlib
import os
import select
import stat

from arise.sandbox.inside.asker import Asker, anybody_else
from arise.sandbox.inside.writers import NOBODY, PROGRAM

MAX_BYTES, MAX_NOTES = 64 * 1024, 5
_SHOWN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Reward:
    """One reward file: the data received by its socket.

    `file` is the copy at its path, which any process may change.
    """

    def __init__(self, writer: str, order: int, data: bytes) -> None:
        self.writer, self.order, self.data = writer, order, bytearray(data)
        self.socket: _socket.socket | None = None
        self.inode, self.file = 0, -1
        self.handed_to = ""

    def connect(self, file: int) -> _socket.socket:
        """Open the channel and return the writer's end."""
        self.socket, theirs = _socket.socketpair()
        self.socket.setblocking(False)
        self.socket.shutdown(_socket.SHUT_WR)  # a reader of its own output sees the end of file and does not block
        self.inode, self.file = os.fstat(theirs.fileno()).st_ino, file
        return theirs

    def drain(self) -> None:
        """Read what was written so far."""
        while self.socket is not None:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self.data += data[: MAX_BYTES + 1 - len(self.data)]
            if self.file >= 0:
                with contextlib.suppress(OSError):
                    os.write(self.file, data)

    def close(self) -> None:
        """Close the channel."""
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        if self.file >= 0:
            os.close(self.file)
            self.file = -1


class Rewards:
    """The data written below `logs`, in order of writing."""

    def __init__(self, logs: str, waiting: select.epoll) -> None:
        self.logs, self.waiting = logs, waiting
        self.files: dict[str, Reward] = {}
        self.replaced: list[Reward] = []
        self.programs: set[str] = set()
        """Processes that test.sh started itself and that may write."""
        self.notes: list[str] = []
        self.order = 0

    def may_write(self, asker: Asker) -> bool:
        """Return whether writes of the asker count; those of a child forked by one of the programs do not."""
        role = asker.role
        return role != NOBODY and (role != PROGRAM or asker.process in self.programs)

    def open(self, asker: Asker, path: str, flags: int) -> _socket.socket | None:
        """Return the channel for an asker that opens a reward file; None lets it open the file at the path."""
        if not self._concerns(path):
            return None
        if not self.may_write(asker):
            self._note(f"{asker.name} wrote {os.path.basename(path)}")
            return None
        before = self.files.get(path)
        if before is not None:
            before.drain()
            self.replaced.append(before)
        kept = bytes(before.data) if before is not None and not flags & os.O_TRUNC else b""
        reward = self._add(path, asker.name, kept)
        channel = reward.connect(_shown(path, flags))
        assert reward.socket is not None
        self.waiting.register(reward.socket.fileno(), select.EPOLLIN)
        return channel

    def rename(self, asker: Asker, source: str, target: str) -> None:
        """Count a file renamed to a reward file if it was written as one, or while no other process could change it."""
        if not self._concerns(target):
            self._forget(asker, source)
        elif not self.may_write(asker):
            self._note(f"{asker.name} moved a file to {os.path.basename(target)}")
        elif source in self.files:
            moved = self.files.pop(source)
            self.order += 1
            moved.order = self.order
            self.files[target] = moved
        else:
            data = _content(source) if os.path.dirname(source) == self.logs and not anybody_else() else None
            self.files.pop(target, None)
            if data is None:
                self._note(f"{os.path.basename(target)} was moved there while programs of the attempt could change it")
            else:
                self._add(target, asker.name, data)

    def remove(self, asker: Asker, path: str) -> None:
        """Discard a reward file that test.sh removes."""
        self._forget(asker, path)

    def hand_over(self, asker: Asker, image: str) -> None:
        """Mark reward files that the asker leaves open for an unpermitted program, whose writes do not count."""
        for reward in (*self.files.values(), *self.replaced):
            if reward.socket is not None and asker.hands_over(reward.inode):
                reward.handed_to = image

    def drain(self) -> None:
        """Read what was written so far."""
        for reward in (*self.files.values(), *self.replaced):
            reward.drain()
        self.replaced = [reward for reward in self.replaced if reward.socket is not None]

    def report(self) -> dict[str, object]:
        """Return everything as JSON values."""
        self.drain()
        files = [
            {
                "name": os.path.basename(path),
                "data": reward.data.decode("latin-1"),
                "writer": reward.writer,
                "order": reward.order,
                "handed_to": reward.handed_to,
            }
            for path, reward in self.files.items()
        ]
        return {"files": files, "notes": self.notes}

    def close(self) -> None:
        """Close all channels."""
        for reward in (*self.files.values(), *self.replaced):
            reward.close()

    def _concerns(self, path: str) -> bool:
        """Return whether a name is watched: the two that count, and those that tests write first and then rename."""
        return os.path.dirname(path) == self.logs and "reward" in os.path.basename(path)

    def _add(self, path: str, writer: str, data: bytes) -> Reward:
        self.order += 1
        self.files[path] = Reward(writer, self.order, data)
        return self.files[path]

    def _forget(self, asker: Asker, path: str) -> None:
        if path in self.files and self.may_write(asker):
            self.replaced.append(self.files.pop(path))

    def _note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)


def _shown(path: str, flags: int) -> int:
    """Create a file at the path for tests that check its existence; return -1 if it cannot be written."""
    try:
        if flags & os.O_TRUNC:
            with contextlib.suppress(OSError):
                os.unlink(path)
        file = os.open(path, _SHOWN | flags & (os.O_TRUNC | os.O_APPEND), 0o644)
    except OSError:
        return -1
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return -1


def _content(path: str) -> bytes | None:
    """Return the content of a regular file, truncated after MAX_BYTES + 1 bytes; None if it cannot be opened."""
    try:
        file = os.open(path, _READ)
    except OSError:
        return None
    try:
        return os.read(file, MAX_BYTES + 1) if stat.S_ISREG(os.fstat(file).st_mode) else None
    finally:
        os.close(file)
