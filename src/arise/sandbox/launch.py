"""Start bubblewrap, and apply limits to the new sandbox before any agent code runs in it."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from arise.ports import SandboxLost
from arise.sandbox.bubblewrap import BubblewrapSandbox, await_death, send_kill
from arise.sandbox.cgroup import Cgroups, ControlGroup
from arise.sandbox.companion import end, start_companion
from arise.sandbox.layout import TEMPORARY, Layout, SandboxUnavailable
from arise.sandbox.limits import Limits
from arise.sandbox.outside import prepare
from arise.sandbox.owner import new_name
from arise.sandbox.seccomp import open_filter
from arise.sandbox.tree import FOLDER

Make = type[BubblewrapSandbox]
START_SECONDS = 60.0
_NOT_PERMITTED = ("namespace", "uid map", "Operation not permitted", "Permission denied", "No permissions")
# The settings of Debian, of Ubuntu and of every kernel: (the value that forbids user namespaces, one that allows them).
_NAMESPACE_SETTINGS = {
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "user.max_user_namespaces": ("0", "15000"),
}
# The kernel counts these per user, and all sandboxes share one user: no sandbox may exhaust them for the others.
_SHARED = {
    resource.RLIMIT_SIGPENDING: 256,
    resource.RLIMIT_MSGQUEUE: 128 * 1024,
    resource.RLIMIT_MEMLOCK: 64 * 1024,
}


class NotCovered(SandboxLost):
    """A `late` layout cannot be used here: bwrap has to cover /proc."""


def _limit(pid: int, limits: Limits, grouped: bool) -> None:
    """Set limits that every command inherits; without cgroups, also the weaker ones per process and user."""
    values = {
        resource.RLIMIT_FSIZE: limits.disk_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
        **_SHARED,
    }
    if not grouped:
        values |= {resource.RLIMIT_AS: limits.memory_bytes, resource.RLIMIT_NPROC: limits.processes + 1}
    for kind, value in values.items():
        _, most = resource.prlimit(pid, kind)
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.prlimit(pid, kind, (value, value))


def _spawn(
    layout: Layout, shown: dict[str, Path], control: socket.socket, info: int, errors: int, grouped: bool, name: str
) -> "subprocess.Popen[bytes]":
    """Start bwrap in its own session, so that an interrupt typed at the terminal reaches only ARISE.

    The `name` among the arguments is how the processes of this sandbox are found if bwrap is killed too early.
    """
    line = [*layout.prefix, *layout.arguments, "--info-fd", str(info)]
    passed = [control.fileno(), info, *layout.passed]
    for place, path in shown.items():
        line += ["--ro-bind", str(path), place]
    line += layout.closing
    rules = open_filter(guarded=bool(layout.guard_settings))
    if rules is not None:
        line += ["--seccomp", str(rules)]
        passed.append(rules)
    # The server enforces the limits that no cgroup enforces.
    caps = (0, 0) if grouped else (layout.limits.processes, layout.limits.memory_bytes)
    server = layout.server(str(control.fileno()), *map(str, caps), name)
    try:
        return subprocess.Popen(
            [*line, *server],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            pass_fds=passed,
            start_new_session=True,
        )
    finally:
        if rules is not None:
            os.close(rules)


def _explain(errors: int) -> SandboxLost:
    """Return an error that explains why bwrap exited before its server was ready."""
    said = os.pread(errors, 2000, 0).decode("utf-8", "replace").strip() or "no message"
    if said.startswith("bwrap:") and any(sign in said for sign in _NOT_PERMITTED):
        return SandboxUnavailable(f"bubblewrap may not make namespaces here ({said})", allow_namespaces())
    return SandboxLost(f"the sandbox did not start: {said}")


def allow_namespaces(settings: Path = Path("/proc/sys")) -> str:
    """Return how to let bubblewrap create user namespaces: the kernel settings that forbid it, or all candidates."""
    found = [
        f"{name}={allowed}"
        for name, (forbidden, allowed) in _NAMESPACE_SETTINGS.items()
        if _setting(settings, name) == forbidden
    ]
    values = found or [f"{name}={allowed}" for name, (_, allowed) in _NAMESPACE_SETTINGS.items()]
    remedy = f"as root: sysctl -w {' '.join(values)}"
    if found:
        return remedy
    return (
        "In a container, start it with --privileged or with --security-opt seccomp=unconfined --security-opt "
        f"apparmor=unconfined; elsewhere, {remedy}, as far as these settings exist"
    )


def _setting(settings: Path, name: str) -> str:
    try:
        return settings.joinpath(*name.split(".")).read_text().strip()
    except OSError:
        return ""


async def start(layout: Layout, cgroups: Cgroups | None, make: Make = BubblewrapSandbox) -> BubblewrapSandbox:
    """Start one sandbox; call this from a thread that outlives it, since the kernel kills it with that thread."""
    try:
        return await _start(layout, cgroups, make)
    except OSError as error:  # out of descriptors, memory or disk
        raise SandboxLost(f"a sandbox could not be started: {error}") from error


async def _start(layout: Layout, cgroups: Cgroups | None, make: Make) -> BubblewrapSandbox:
    start_companion()
    name = new_name()
    with contextlib.ExitStack() as here, contextlib.ExitStack() as on_failure:
        with contextlib.ExitStack() as handed_over:
            ours, theirs = socket.socketpair()
            on_failure.callback(ours.close)
            handed_over.callback(theirs.close)
            info, info_sink = os.pipe()
            here.callback(os.close, info)
            handed_over.callback(os.close, info_sink)
            errors = os.memfd_create("arise-bwrap-errors")
            here.callback(os.close, errors)
            shown = {place: Path(tempfile.gettempdir(), new_name()) for place in layout.shown}
            for path in shown.values():
                on_failure.callback(shutil.rmtree, path, ignore_errors=True)
                path.mkdir(0o700)
            process = _spawn(layout, shown, theirs, info_sink, errors, cgroups is not None, name)
        on_failure.callback(end, name.__eq__)
        on_failure.callback(process.wait)
        on_failure.callback(process.kill)
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        on_failure.callback(writer.close)
        try:
            async with asyncio.timeout(START_SECONDS):
                await reader.readexactly(1)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            raise _explain(errors) from error
        pid = json.loads(os.read(info, 4096))["child-pid"]
        (pidfds, folders, group), prepared = await asyncio.gather(
            _take_hold(layout, shown, cgroups, pid, process.pid, on_failure),
            asyncio.to_thread(prepare, pid, layout.late_covers),
        )
        if not prepared.covered:
            raise NotCovered("/proc of a sandbox could not be covered from outside")
        on_failure.pop_all()
        return make(layout, process, reader, writer, pidfds, folders, shown, group, prepared.watches_capped)


async def _take_hold(
    layout: Layout,
    shown: dict[str, Path],
    cgroups: Cgroups | None,
    pid: int,
    outer: int,
    on_failure: contextlib.ExitStack,
) -> tuple[tuple[int, int], dict[str, int], ControlGroup | None]:
    """Apply the limits and open the file descriptors the host needs, before any agent code runs."""

    def kept(fd: int) -> int:
        on_failure.callback(os.close, fd)
        return fd

    pidfds = kept(os.pidfd_open(pid)), kept(os.pidfd_open(outer))
    places = {place: Path(f"/proc/{pid}/root{place}") for place in (*layout.writable, TEMPORARY)} | shown
    folders = {place: kept(os.open(path, FOLDER)) for place, path in places.items()}
    _limit(pid, layout.limits, grouped=cgroups is not None)
    if cgroups is None:
        return pidfds, folders, None
    group = cgroups.create(layout.limits)
    on_failure.callback(group.remove)
    on_failure.callback(await_death, pidfds[0])  # only then can the group be removed
    on_failure.callback(send_kill, pidfds[0])
    await asyncio.to_thread(group.add, pid)  # the kernel may block the writer until all processors respond
    return pidfds, folders, group
