"""One bubblewrap sandbox: how it starts, how a command runs in it, and how all its processes are ended for certain.

Writable folders are sized memory file systems that exist only inside the sandbox; the host holds them by descriptor, so
files outlive the processes, have an exact size cap, and vanish with ARISE whatever ends it. Nothing is written to disk.
"""

import asyncio
import contextlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.cgroup import Cgroups, Group
from arise.sandbox.layout import SERVER, Layout, SandboxUnavailable, inner_python
from arise.sandbox.limits import Limits
from arise.sandbox.seccomp import open_filter
from arise.sandbox.tree import FOLDER, copy_tree, read_plain_file
from arise.types import CommandResult

START_SECONDS = 60.0
DEATH_SECONDS = 10.0
GRACE_SECONDS = 10.0  # the server ends a command at its deadline; this much later the sandbox itself is held to be lost
MAX_COMMAND_BYTES = 128 * 1024 - 1  # the kernel's limit on one argument
NOT_STARTED, KILLED = 126, 137
_ENDED = ("exit", "timeout", "output")
_NOT_PERMITTED = ("namespace", "uid map", "Operation not permitted", "Permission denied", "No permissions")


async def _dead(pidfd: int) -> None:
    """Waits until the process behind a descriptor is dead."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    if poller.poll(0):
        return
    loop = asyncio.get_running_loop()
    died = asyncio.Event()
    loop.add_reader(pidfd, died.set)
    try:
        async with asyncio.timeout(DEATH_SECONDS):
            await died.wait()
    except TimeoutError:
        raise SandboxLost(f"a sandbox process did not die within {DEATH_SECONDS:g} s of SIGKILL") from None
    finally:
        loop.remove_reader(pidfd)


@dataclass(eq=False)
class BubblewrapSandbox:
    """A running sandbox; made by `start`, owned by whoever opened it, and closed by its owner or else by its pool."""

    layout: Layout
    process: "subprocess.Popen[bytes]"
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pidfds: tuple[int, ...]
    """Process 1 inside, then bwrap: once the first is dead, the kernel has ended every other process of the sandbox."""
    folders: dict[str, int]
    group: Group | None
    left_out: tuple[str, ...] = ()
    """What `fill` did not bring along, and why."""
    on_close: Callable[["BubblewrapSandbox"], None] | None = None
    _running: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _killed: bool = False
    _ended: bool = False
    _closed: bool = False
    _out_of_memory: bool = False
    _kills_seen: int = 0

    @property
    def workdir(self) -> str:
        """Where commands run, as seen from inside."""
        return self.layout.workdir

    @property
    def files(self) -> Path:
        """The working directory as the host reaches it until `close`; it is the agent's, so follow no link in it."""
        return self.folder(self.workdir)

    @property
    def alive(self) -> bool:
        return not self._killed and self.process.poll() is None

    def folder(self, place: str) -> Path:
        """One of the layout's writable folders as the host can reach it."""
        return Path(f"/proc/self/fd/{self.folders[place]}")

    async def fill(self, place: str, source: Path, skip: Collection[str] = ()) -> None:
        """Copies the content of a host folder into one of the layout's writable folders."""
        try:
            left_out = await asyncio.to_thread(copy_tree, source, self.folders[place], place, skip)
        except OSError as error:
            raise SandboxLost(f"{source} could not be copied to {place}: {error}") from error
        self.left_out += left_out

    def read(self, place: str, name: str, limit: int) -> bytes | None:
        """A regular file directly in a writable folder, or None when it is absent, something else or too large."""
        return read_plain_file(self.folders[place], name, limit)

    async def run(self, command: str, timeout: float, alone: bool = False) -> CommandResult:
        """Runs one command; with `alone`, whatever it left running is ended before its result is given."""
        data = command.encode("utf-8", "replace")
        if b"\0" in data or len(data) > MAX_COMMAND_BYTES:
            return CommandResult(f"a command must have no NUL and at most {MAX_COMMAND_BYTES} bytes\n", NOT_STARTED)
        cap = self.layout.limits.output_bytes
        header = (len(data), max(1, int(timeout * 1000)), cap)
        frame = b"".join(value.to_bytes(4, "big") for value in header) + bytes((alone,)) + data
        async with self._running:
            if self._out_of_memory:
                return CommandResult("the sandbox was ended by its memory limit\n", KILLED, "memory")
            if self._killed:
                raise SandboxLost("the sandbox has been ended")
            try:
                return await self._exchange(frame, timeout)
            except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
                return await self._lost(error)
            except BaseException:  # cancelled midway: the next answer would belong to this command
                self.kill()
                raise

    async def _exchange(self, frame: bytes, timeout: float) -> CommandResult:
        self.writer.write(frame)
        async with asyncio.timeout(timeout + GRACE_SECONDS):
            header = await self.reader.readexactly(6)
            output = await self.reader.readexactly(int.from_bytes(header[2:], "big"))
        ended, cap = _ENDED[header[0]], self.layout.limits.output_bytes
        if self._memory_kills() and ended == "exit":
            ended = "memory"
        return CommandResult(output[:cap].decode("utf-8", "replace"), header[1], ended, truncated=len(output) > cap)

    def _memory_kills(self) -> int:
        """How many processes the kernel has ended for want of memory since the last look."""
        if self.group is None:
            return 0
        before, self._kills_seen = self._kills_seen, self.group.out_of_memory_kills()
        return self._kills_seen - before

    async def _lost(self, error: Exception) -> CommandResult:
        """A server that died of the memory limit is the command's doing; any other death is an infrastructure fault."""
        await self.end()
        if self._memory_kills():
            self._out_of_memory = True
            return CommandResult("the sandbox was ended by its memory limit\n", KILLED, "memory")
        raise SandboxLost(f"the sandbox stopped answering ({type(error).__name__}: {error})") from error

    def kill(self) -> None:
        """Sends SIGKILL to process 1, and with it to every process of the sandbox, without waiting."""
        self._killed = True
        self.writer.close()
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfds[0], signal.SIGKILL)

    async def end(self) -> None:
        """Ends every process of the sandbox and returns when they are dead; the files stay until `close`."""
        async with self._ending:
            if self._ended:
                return
            self.kill()
            for pidfd in self.pidfds:
                await _dead(pidfd)
            self.process.wait()
            self._ended = True

    async def close(self) -> None:
        """Ends every process and lets go of everything the sandbox held."""
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


def _limit(pid: int, limits: Limits, grouped: bool) -> None:
    """Sets limits that every command inherits; without control groups, also the weaker ones by process and user."""
    values = {
        resource.RLIMIT_FSIZE: limits.disk_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    if not grouped:
        values |= {resource.RLIMIT_AS: limits.memory_bytes, resource.RLIMIT_NPROC: limits.processes + 1}
    for kind, value in values.items():
        resource.prlimit(pid, kind, (value, value))


def _spawn(layout: Layout, control: socket.socket, info: int, errors: int) -> "subprocess.Popen[bytes]":
    """Starts bwrap in a session of its own, so that an interrupt typed at the terminal reaches ARISE only."""
    rules = open_filter()
    passed = [control.fileno(), info, *([] if rules is None else [rules])]
    line = [*layout.arguments(), "--info-fd", str(info), *([] if rules is None else ["--seccomp", str(rules)])]
    line += [inner_python()[0], "-I", "-S", SERVER, str(control.fileno())]
    try:
        return subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=passed, start_new_session=True
        )
    except OSError as error:
        raise SandboxLost(f"bubblewrap could not be started: {error}") from error
    finally:
        if rules is not None:
            os.close(rules)


def _explain(errors: int) -> SandboxLost:
    """Why bwrap ended before its server was ready."""
    said = os.pread(errors, 2000, 0).decode("utf-8", "replace").strip() or "no message"
    if said.startswith("bwrap:") and any(sign in said for sign in _NOT_PERMITTED):
        return SandboxUnavailable(
            f"bubblewrap may not make namespaces here ({said}). In a container, start it with --privileged or "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined; elsewhere allow them with: "
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 kernel.unprivileged_userns_clone=1"
        )
    return SandboxLost(f"the sandbox did not start: {said}")


async def start(layout: Layout, cgroups: Cgroups | None) -> BubblewrapSandbox:
    """Starts one sandbox; must be called from a thread that outlives it, since the kernel ends it with that thread."""
    with contextlib.ExitStack() as on_the_way:
        ours, theirs = socket.socketpair()
        info, info_sink = os.pipe()
        errors = os.memfd_create("arise-bwrap-errors")
        for fd in (info, errors):
            on_the_way.callback(os.close, fd)
        try:
            process = _spawn(layout, theirs, info_sink, errors)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(info_sink)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            try:
                async with asyncio.timeout(START_SECONDS):
                    await reader.readexactly(1)
            except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
                writer.close()
                raise _explain(errors) from error
            pid = json.loads(os.read(info, 4096))["child-pid"]
            return await _take_hold(layout, cgroups, process, pid, reader, writer)
        except BaseException:
            process.kill()
            process.wait()
            raise


async def _take_hold(
    layout: Layout,
    cgroups: Cgroups | None,
    process: "subprocess.Popen[bytes]",
    pid: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> BubblewrapSandbox:
    """Puts the limits on and opens what the host needs, before anything of the agent's has run."""
    held: list[int] = []
    group = None
    try:
        held.extend(os.pidfd_open(owned) for owned in (pid, process.pid))
        held.extend(os.open(f"/proc/{pid}/root{place}", FOLDER) for place in layout.places)
        _limit(pid, layout.limits, grouped=cgroups is not None)
        if cgroups is not None:
            group = cgroups.create(layout.limits)
            await asyncio.to_thread(group.add, pid)  # the kernel may make the writer wait for all processors
    except BaseException as error:
        writer.close()
        process.kill()
        process.wait()
        for fd in held:
            os.close(fd)
        if group is not None:
            group.remove()
        if isinstance(error, OSError):
            raise SandboxLost(f"a new sandbox could not be taken hold of: {error}") from error
        raise
    return BubblewrapSandbox(
        layout, process, reader, writer, (held[0], held[1]), dict(zip(layout.places, held[2:], strict=True)), group
    )
