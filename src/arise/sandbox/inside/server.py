"""The server inside a sandbox: process 1 of its namespace, which runs commands for the host one at a time.

Executed only inside, by any Python 3.9 or later, and never imported by ARISE. It imports nothing slow (no json, socket
or signal), because each sandbox pays for its start. Process 1 receives no signal from inside that it has no handler
for, so it must install none.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

sys.path.insert(0, "/run/arise")
from arise.sandbox.inside.users import become, connect, spawn_as
from arise.sandbox.usage import Allowance, Usage, private_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from arise.sandbox.inside.guard import Guard

CONTROL = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else -1
"""The socket to the host; a container inherits none and connects to the path that it is given instead."""
MAX_THREADS, MAX_MEMORY = (int(value) for value in sys.argv[2:4]) if len(sys.argv) > 3 else (0, 0)
"""Limits that this process enforces; 0 if the kernel enforces them by a control group."""
SETTINGS = sys.argv[5] if len(sys.argv) > 5 else ""
"""The settings of the guard, "" if no command is guarded."""
SIGINT, SIGKILL = 2, 9
NOT_STARTED = 126
LINGER_SECONDS = 0.3
IDLE_SECONDS = 0.1
EXIT, TIMEOUT, OUTPUT, MEMORY, PROCESSES = 0, 1, 2, 3, 4
ALONE, GUARDED, AS_USER = 1, 2, 4
LEFT, SIGNALLED = 1, 2


def read_exactly(size: int) -> bytes:
    """Read a whole field of a frame; exit if the host closed the connection."""
    parts = []
    while size:
        part = os.read(CONTROL, size)
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(data: bytes) -> None:
    """Write a whole frame to the host."""
    view = memoryview(data)
    while view:
        view = view[os.write(CONTROL, view) :]


def reap(wait: bool) -> None:
    """Reap dead children, including orphans; with `wait`, until no children are left."""
    try:
        while os.waitpid(-1, 0 if wait else os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def signal_all(number: int) -> bool:
    """Signal every other process of the namespace in one system call; return false if there is none."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return False
    return True


def drain(source: int, output: bytearray, cap: int) -> None:
    """Read what is left in the output pipe without waiting for more."""
    os.set_blocking(source, False)
    try:
        while len(output) <= cap:
            data = os.read(source, 65536)
            if not data:
                return
            output += data
    except BlockingIOError:
        return


def tail(source: int, output: bytearray, cap: int) -> None:
    """Wait briefly for output of the last processes of a command, as behind `> >(cat)`.

    Without this wait the scheduler would decide whether their output belongs to the command.
    """
    poller = select.poll()
    poller.register(source, select.POLLIN)
    deadline = time.monotonic() + LINGER_SECONDS
    while len(output) <= cap and (left := deadline - time.monotonic()) > 0:
        if poller.poll(left * 1000):
            data = os.read(source, 65536)
            if not data:
                return  # every writer has closed the pipe
            output += data


def any_left(source: int, output: bytearray, cap: int, guard: Guard | None) -> bool:
    """Return whether processes outlive the command, after a short wait for those about to exit."""
    allowance = Allowance(LINGER_SECONDS)
    while True:
        drain(source, output, cap)
        if guard is not None:
            guard.serve()
        reap(wait=False)
        if not signal_all(0):
            return False
        allowance.look()
        if allowance.left <= 0:
            return True
        time.sleep(0.002)


def spawn(command: bytes, output: int) -> int:
    """Start the command in its own session, with only /dev/null and the output pipe open."""
    return os.posix_spawn(
        "/bin/bash",
        [b"bash", b"-c", command],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ],
        setsid=True,
    )


def excess(usage: Usage) -> int:
    """Return the limit, not enforced by a cgroup, that the processes of the sandbox exceed; 0 for none."""
    if MAX_THREADS and usage.threads > MAX_THREADS:
        return PROCESSES
    return MEMORY if MAX_MEMORY and private_memory() > MAX_MEMORY else 0


def idle() -> None:
    """Wait for the next command; meanwhile kill processes of earlier commands once they exceed a limit."""
    poller = select.poll()
    poller.register(CONTROL, select.POLLIN)
    while MAX_THREADS and not poller.poll(IDLE_SECONDS * 1000):
        reap(wait=False)
        if not signal_all(0):
            return  # no process is left that could exceed a limit
        if excess(Usage()):
            signal_all(SIGKILL)


def watch(pid: int, source: int, allowance: Allowance, cap: int, guard: Guard | None) -> tuple[int, bytearray]:
    """Collect output until the command exits, times out or reaches a limit."""
    ended_fd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(source, select.POLLIN)
    poller.register(ended_fd, select.POLLIN)
    poller.register(CONTROL, select.POLLRDHUP)
    if guard is not None:
        poller.register(guard.waiting, select.POLLIN)
    output = bytearray()
    try:
        while True:
            if allowance.look() and (over := excess(allowance.usage)):
                return over, output
            if allowance.left <= 0:
                return TIMEOUT, output
            ready = {fd for fd, _ in poller.poll(allowance.next_look * 1000)}
            if CONTROL in ready:
                os._exit(0)  # the host is gone, and in a container nothing else kills this process
            if guard is not None:
                guard.serve()
            if source in ready:
                data = os.read(source, 65536)
                output += data
                if len(output) > cap:
                    return OUTPUT, output
                if not data:
                    poller.unregister(source)
            elif ended_fd in ready:  # only once the pipe is empty: output printed before the exit is the command's
                return EXIT, output
    finally:
        os.close(ended_fd)


def not_started(error: Exception) -> tuple[int, int, int, bytes]:
    """Return the result of a command that could not start; kill all processes so that the next one can run."""
    signal_all(SIGKILL)
    reap(wait=True)
    return EXIT, NOT_STARTED, LEFT, f"the command could not start ({error}); all processes were ended\n".encode()


def start(user: bytes, command: bytes, sink: int, guard: Guard | None) -> int:
    """Start the command as its user, under a guard if there is one."""
    if guard is not None:
        return guard.spawn(command, sink, lambda: become(user) if user else None)
    return spawn_as(user, command, sink) if user else spawn(command, sink)


def run(
    command: bytes, seconds: float, cap: int, alone: bool, guard: Guard | None, user: bytes = b""
) -> tuple[int, int, int, bytes]:
    """Run one command; if it reaches a limit, or with `alone`, kill every process left in the sandbox.

    Return what ended it, its exit code, the flags LEFT and SIGNALLED, and its output.
    """
    reap(wait=False)
    source, sink = os.pipe()
    allowance = Allowance(seconds)
    try:
        try:
            pid = start(user, command, sink, guard)
        finally:
            os.close(sink)
        ended, output = watch(pid, source, allowance, cap, guard)
        if ended != EXIT:
            signal_all(SIGKILL)
        elif not alone:
            tail(source, output, cap)
        status = os.waitpid(pid, 0)[1]
        left = ended != EXIT or (alone and any_left(source, output, cap, guard))
        if left:
            signal_all(SIGKILL)
            reap(wait=True)
        drain(source, output, cap)
    finally:
        os.close(source)
    code = os.waitstatus_to_exitcode(status)
    marks = (LEFT if left else 0) | (SIGNALLED if code < 0 else 0)
    return ended, code if code >= 0 else 128 - code, marks, bytes(output)


def answer(command: bytes, seconds: float, cap: int, flags: int) -> bytes:
    """Return the frame with the result of a command; if it could not start, kill all processes first."""
    guard, report = None, b""
    try:
        guard = new_guard() if flags & GUARDED else None
        user, _, command = command.partition(b"\0") if flags & AS_USER else (b"", b"", command)
        ended, code, marks, output = run(command, seconds, cap, bool(flags & ALONE), guard, user)
    except (OSError, MemoryError) as error:
        ended, code, marks, output = not_started(error)
    if guard is not None:
        report = guard.report()
        guard.close()
    sizes = len(output).to_bytes(4, "big") + len(report).to_bytes(4, "big")
    return bytes((ended, code, marks)) + sizes + output + report


def new_guard() -> Guard:
    """Return the supervisor of one command."""
    from arise.sandbox.inside.guard import Guard

    return Guard(SETTINGS)


def serve() -> None:
    """Report readiness, then answer frames until the host closes the connection."""
    global CONTROL
    _signal.signal(SIGINT, _signal.SIG_DFL)
    if CONTROL < 0:
        CONTROL = connect(sys.argv[1])
        os.makedirs(sys.argv[6], exist_ok=True)  # an image may name a working directory that does not exist in it
        os.chdir(sys.argv[6])
    os.set_inheritable(CONTROL, False)
    if SETTINGS:
        new_guard().close()  # so that the first command does not wait for these imports
    write_all(b"R")
    while True:
        idle()
        header = read_exactly(13)
        size, milliseconds, cap = (int.from_bytes(header[at : at + 4], "big") for at in (0, 4, 8))
        write_all(answer(read_exactly(size), milliseconds / 1000, cap, header[12]))


if __name__ == "__main__":
    serve()
