"""The inside end of a sandbox: process 1 of its namespace, running one command after another for the host.

Only ever executed inside, by whatever Python 3.9 or later is there, and never imported by ARISE. It imports nothing
slow (no json, socket or signal), because each sandbox pays for its start. Process 1 cannot be signalled from inside.
"""

import os
import select
import sys
import time

CONTROL = int(sys.argv[1]) if len(sys.argv) > 1 else -1
SIGKILL = 9
NOT_STARTED = 126
LINGER_SECONDS = 0.3
EXIT, TIMEOUT, OUTPUT = 0, 1, 2


def read_exactly(size: int) -> bytes:
    """Reads a whole field of a frame; the host's hanging up ends the sandbox."""
    parts = []
    while size:
        part = os.read(CONTROL, size)
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(data: bytes) -> None:
    """Writes a whole frame to the host."""
    view = memoryview(data)
    while view:
        view = view[os.write(CONTROL, view) :]


def reap(wait: bool) -> None:
    """Collects dead children, orphans included; with `wait`, until there are no children at all."""
    try:
        while os.waitpid(-1, 0 if wait else os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def signal_all(number: int) -> bool:
    """Signals every process of the namespace but this one, in one sweep of the kernel; false when there is none."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return False
    return True


def drain(source: int, output: bytearray, cap: int) -> None:
    """Takes what is left in the output pipe without waiting for more."""
    os.set_blocking(source, False)
    try:
        while len(output) <= cap:
            data = os.read(source, 65536)
            if not data:
                return
            output += data
    except BlockingIOError:
        return


def any_left(source: int, output: bytearray, cap: int) -> bool:
    """Whether processes outlast the command, after a moment for those about to end, such as the tail of a pipe."""
    deadline = time.monotonic() + LINGER_SECONDS
    while True:
        drain(source, output, cap)
        reap(wait=False)
        if not signal_all(0):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(0.002)


def spawn(command: bytes, output: int) -> int:
    """Starts the command in its own session, with nothing open but /dev/null and the output pipe."""
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


def watch(pid: int, source: int, deadline: float, cap: int) -> tuple[int, bytearray]:
    """Collects output until the command ends, the deadline passes or the cap is reached."""
    ended_fd = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(source, select.POLLIN)
    poller.register(ended_fd, select.POLLIN)
    output = bytearray()
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return TIMEOUT, output
            ready = {fd for fd, _ in poller.poll(left * 1000)}
            if source in ready:
                data = os.read(source, 65536)
                output += data
                if len(output) > cap:
                    return OUTPUT, output
                if not data:
                    poller.unregister(source)
            elif ended_fd in ready:  # only once the pipe is empty: what was printed before the end belongs to it
                return EXIT, output
    finally:
        os.close(ended_fd)


def run(command: bytes, seconds: float, cap: int, alone: bool) -> tuple[int, int, bool, bytes]:
    """Runs one command; a cap reached, or `alone`, ends every process that is left in the sandbox, and says so."""
    reap(wait=False)
    source, sink = os.pipe()
    deadline = time.monotonic() + seconds
    try:
        pid = spawn(command, sink)
    except OSError as error:  # the agent's own processes fill the sandbox: clear them, so that the next command can run
        signal_all(SIGKILL)
        reap(wait=True)
        os.close(source)
        return EXIT, NOT_STARTED, True, f"the command could not start ({error}); all processes were ended\n".encode()
    finally:
        os.close(sink)
    ended, output = watch(pid, source, deadline, cap)
    if ended != EXIT:
        signal_all(SIGKILL)
    status = os.waitpid(pid, 0)[1]
    left = ended != EXIT or (alone and any_left(source, output, cap))
    if left:
        signal_all(SIGKILL)
        reap(wait=True)
    drain(source, output, cap)
    os.close(source)
    code = os.waitstatus_to_exitcode(status)
    return ended, code if code >= 0 else 128 - code, left, bytes(output)


def serve() -> None:
    """Says it is ready, then answers frames until the host hangs up."""
    os.set_inheritable(CONTROL, False)
    write_all(b"R")
    while True:
        header = read_exactly(13)
        size, milliseconds, cap = (int.from_bytes(header[at : at + 4], "big") for at in (0, 4, 8))
        ended, code, left, output = run(read_exactly(size), milliseconds / 1000, cap, bool(header[12]))
        write_all(bytes((ended, code, left)) + len(output).to_bytes(4, "big") + output)


if __name__ == "__main__":
    serve()
