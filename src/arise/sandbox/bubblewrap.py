"""One bubblewrap sandbox: run commands in it and reliably kill all its processes.

Writable folders are size-limited tmpfs mounts that exist only inside the sandbox. The host holds them by file
descriptor, so files outlive the processes, have an exact size limit, and disappear when ARISE exits for any reason.
"""

import asyncio
import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from arise.ports import SandboxLost, TreeRefused
from arise.sandbox import transfer
from arise.sandbox.cgroup import ControlGroup
from arise.sandbox.layout import RELAY, USER, Layout, inner_python
from arise.sandbox.tree import copy_tree, read_plain_file
from arise.sandbox.usage import MAX_STRETCH
from arise.types import CommandResult

DEATH_SECONDS = 10.0
GRACE_SECONDS = 10.0  # after the deadline at which the server kills the command; later than this, the server is blocked
CATCH_UP_SECONDS = 1.0  # time to read an answer that is already available when this process was itself delayed
MAX_COMMAND_BYTES = 128 * 1024 - 1  # the kernel's limit on one argument
NOT_STARTED, KILLED = 126, 137
RELAY_PORT, RELAY_SECONDS = 8791, 60.0
_ENDED = ("exit", "timeout", "output", "memory", "processes")


async def _dead(pidfd: int) -> None:
    """Wait until the process behind a pidfd is dead."""
    if await_death(pidfd, 0):
        return
    loop = asyncio.get_running_loop()
    died = asyncio.Event()
    loop.add_reader(pidfd, died.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEATH_SECONDS):
                await died.wait()
    finally:
        loop.remove_reader(pidfd)
    # The time also passes while this process is itself stopped or its machine sleeps.
    if not await_death(pidfd, 0):
        raise SandboxLost(f"a sandbox process did not die within {DEATH_SECONDS:g} s of SIGKILL")


def _remove(folders: Collection[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def with_env(command: str, env: Mapping[str, str]) -> str:
    """Return a shell command that exports the variables first."""
    exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    return f"export {exports}; {command}" if exports else command


def send_kill(pidfd: int) -> None:
    """Send SIGKILL to the process behind a pidfd, if it still exists."""
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def await_death(pidfd: int, seconds: float = DEATH_SECONDS) -> bool:
    """Block until the process behind a pidfd dies; return whether it did."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


@dataclass(eq=False)
class BubblewrapSandbox:
    """A running sandbox, created by `launch.start` and closed by its opener or its pool."""

    layout: Layout
    process: "subprocess.Popen[bytes]"
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pidfds: tuple[int, ...]
    """Process 1 inside, then bwrap: once the first is dead, the kernel has ended every other process of the sandbox."""
    folders: dict[str, int]
    """Open descriptors of the folders that the host can fill."""
    shown: dict[str, Path]
    group: ControlGroup | None
    watches_capped: bool = True
    """Whether its share of the machine's inotify instances is limited."""
    left_out: tuple[str, ...] = ()
    """What `fill` left out, and why."""
    left_running: bool = False
    """Whether the last command that ran `alone` left processes running."""
    signalled: bool = False
    """Whether a signal ended the last command."""
    report: bytes = b""
    """The report of the guard of the last command, as JSON."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that every command of an attempt sees."""
    on_close: Callable[["BubblewrapSandbox"], None] | None = None
    _running: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _killed: bool = False
    _ended: bool = False
    _closed: bool = False
    _limit_reached: str = ""
    """The limit at which the commands ended the whole sandbox."""
    _kills_seen: int = 0
    _reached: dict[str, str] = field(default_factory=dict)

    @property
    def workdir(self) -> str:
        """Return the working directory of commands, as seen from inside."""
        return self.layout.workdir

    @property
    def alive(self) -> bool:
        return not self._killed and self.process.poll() is None

    def folder(self, place: str) -> Path:
        """Return a path by which the host can reach one of the layout's folders."""
        return Path(f"/proc/self/fd/{self.folders[place]}")

    async def fill(
        self, place: str, source: Path, skip: Collection[str] = (), left_by_agent: bool = False, over: bool = False
    ) -> None:
        """Copy the content of a host folder into one of the layout's folders, `over` what is there or beside it.

        Raise TreeRefused if files left by an agent cannot be copied completely.
        """
        try:
            left_out = await asyncio.to_thread(copy_tree, source, self.folders[place], place, skip, left_by_agent, over)
        except TreeRefused as error:
            if left_by_agent:
                raise
            raise SandboxLost(f"{source} could not be copied to {place}: {error}") from error
        except OSError as error:
            raise SandboxLost(f"{source} could not be copied to {place}: {error}") from error
        self.left_out += left_out

    def read(self, place: str, name: str, limit: int) -> bytes | None:
        """Return a regular file directly in one of the folders; None if it is absent, not regular or too large."""
        return read_plain_file(self.folders[place], name, limit)

    async def put(self, source: Path, target: str) -> None:
        """Copy a file or the content of a host folder to the path `target` inside, overwriting existing files."""
        try:
            await asyncio.to_thread(transfer.put, source, target, self.folders)
        except OSError as error:
            raise SandboxLost(f"{source} could not be copied to {target}: {error}") from error

    async def get(self, source: str, target: Path) -> tuple[str, ...]:
        """Copy a file or the content of a folder from inside to the host path `target`; return what was left out."""
        try:
            return await asyncio.to_thread(transfer.get, source, target, self.folders)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SandboxLost(f"{source} could not be copied to {target}: {error}") from error

    async def reach(self, url: str) -> str:
        """Start a relay to the unix socket that `url` names as unix:PATH, and return the URL of its port inside."""
        if url in self._reached:
            return self._reached[url]
        path = url.removeprefix("unix:")
        if path == url:
            raise SandboxLost(f"{url} cannot be reached from a bubblewrap sandbox, which has no network but unix:PATH")
        port = RELAY_PORT + len(self._reached)
        relay = f"{inner_python()[0]} -I -S {RELAY} {shlex.quote(path)} {port}"
        started = await self.run(f"read -r said < <(exec {relay}) && echo $said", RELAY_SECONDS)
        if "ready" not in started.output:
            raise SandboxLost(f"the relay to {url} did not start: {started.output.strip()[-500:] or started.ended}")
        self._reached[url] = f"http://127.0.0.1:{port}"
        return self._reached[url]

    async def run(
        self, command: str, timeout: float, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> CommandResult:
        """Run one shell command in the working directory."""
        if user not in (None, "", USER):
            raise SandboxLost(f"a bubblewrap sandbox has no user {user!r}")
        return await self.run_command(with_env(command, {**self.env, **(env or {})}), timeout)

    async def run_command(
        self, command: str, timeout: float, alone: bool = False, guarded: bool = False, user: bytes = b""
    ) -> CommandResult:
        """Run one command; with `alone`, kill every process it left running before returning the result.

        With `guarded`, `report` records which process wrote which reward file. `user` holds the numeric ids of a user
        of the image, in the format of `User.mark`.
        """
        data = command.encode("utf-8", "replace")
        if b"\0" in data or len(data) > MAX_COMMAND_BYTES:
            return CommandResult(f"a command must have no NUL and at most {MAX_COMMAND_BYTES} bytes\n", NOT_STARTED)
        if user:
            data = user + b"\0" + data
        cap = self.layout.limits.output_bytes
        header = (len(data), max(1, int(timeout * 1000)), cap)
        flags = bytes((alone | guarded << 1 | bool(user) << 2,))
        frame = b"".join(value.to_bytes(4, "big") for value in header) + flags + data
        async with self._running:
            if self._limit_reached:
                return self._ended_by(self._limit_reached)
            if self._killed:
                raise SandboxLost("the sandbox has been ended")
            try:
                return await self._exchange(frame, timeout)
            except TimeoutError:  # only the sandbox's own processes can prevent its server from answering
                await self.end()
                self._limit_reached = "timeout"
                return self._ended_by("timeout")
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                return await self._lost(error)
            except BaseException:  # cancelled midway: the next answer would belong to this command
                self.kill()
                raise

    async def _exchange(self, frame: bytes, timeout: float) -> CommandResult:
        self.writer.write(frame)
        reading = asyncio.ensure_future(self._answer())
        try:
            for patience in (timeout * MAX_STRETCH + GRACE_SECONDS, CATCH_UP_SECONDS):
                if (await asyncio.wait({reading}, timeout=patience))[0]:
                    return reading.result()
        finally:
            reading.cancel()
        raise TimeoutError

    async def _answer(self) -> CommandResult:
        header = await self.reader.readexactly(11)
        output = await self.reader.readexactly(int.from_bytes(header[3:7], "big"))
        self.report = await self.reader.readexactly(int.from_bytes(header[7:], "big"))
        self.left_running, self.signalled = bool(header[2] & 1), bool(header[2] & 2)
        ended, cap = _ENDED[header[0]], self.layout.limits.output_bytes
        if self._memory_kills() and ended == "exit":
            ended = "memory"
        return CommandResult(output[:cap].decode("utf-8", "replace"), header[1], ended, truncated=len(output) > cap)

    def _memory_kills(self) -> int:
        """Return how many processes the kernel has OOM-killed since the last call."""
        if self.group is None:
            return 0
        before, self._kills_seen = self._kills_seen, self.group.out_of_memory_kills()
        return self._kills_seen - before

    async def _lost(self, error: Exception) -> CommandResult:
        """Return a result if the server died of the command's memory limit; otherwise raise SandboxLost."""
        await self.end()
        if self._memory_kills():
            self._limit_reached = "memory"
            return self._ended_by("memory")
        raise SandboxLost(f"the sandbox stopped answering ({type(error).__name__}: {error})") from error

    def _ended_by(self, limit: str) -> CommandResult:
        return CommandResult(f"the sandbox was ended by its {limit} limit\n", KILLED, limit)

    def kill(self) -> None:
        """Send SIGKILL to process 1, and so to every process of the sandbox, without waiting."""
        self._killed = True
        self.writer.close()
        send_kill(self.pidfds[0])

    async def end(self) -> None:
        """Kill every process of the sandbox and wait until all are dead; the files stay until `close`."""
        async with self._ending:
            if self._ended:
                return
            self.kill()
            for pidfd in self.pidfds:
                await _dead(pidfd)
            self.process.wait()
            self._ended = True

    async def close(self) -> None:
        """Kill every process and release all resources of the sandbox."""
        await self.end()
        if self._closed:
            return
        self._closed = True
        for fd in (*self.pidfds, *self.folders.values()):
            os.close(fd)
        if self.group is not None:
            self.group.remove()
        if self.on_close is not None:
            self.on_close(self)
        await asyncio.to_thread(_remove, self.shown.values())  # this takes milliseconds on some disks
