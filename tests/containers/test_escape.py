"""F11 to F16 in images: what a command that is root inside cannot see, reach, take or become."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from arise.types import CommandResult, Place
from tests.containers.conftest import pool_of
from tests.unit.sandbox.test_escape import LIBC

# Each exits with 0 only if it got through. Inside, the agent is root and may change the image's own files.
PROBES = {
    "host password hashes": "grep -qF '{shadow}' /etc/shadow",
    "host repository": "ls {repository}",
    "host temporary file": "cat {planted}",
    "host environment": "env | grep ARISE_PROBE_SECRET",
    "host environment by process 1": "tr '\\0' '\\n' < /proc/1/environ | grep ARISE_PROBE_SECRET",
    "host files by process 1": "ls {planted} /proc/1/root{planted}",
    "memory of process 1": "head -c 1 /proc/1/mem",
    "tracing process 1": f"python3 -c '{LIBC}exit(libc.ptrace(16, 1, 0, 0) != 0)'",
    "ending process 1": "kill -9 1; sleep 0.2; kill -TERM 1; sleep 0.2; false",
    "host processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 12",
    "mounting": f'python3 -c \'{LIBC}exit(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) != 0)\'',
    "new user namespace": "unshare --user --map-root-user true",
    "new mount namespace": "unshare --mount true",
    "kernel keyring": f'python3 -c \'{LIBC}exit(libc.syscall(248, b"user", b"a", b"b", 1, -3) < 0)\'',
    "container engine": "ls /var/run/docker.sock || ls /run/docker.sock || ls /run/podman",
    "control groups": "mkdir /sys/fs/cgroup/memory/probe || echo 1 > /sys/fs/cgroup/pids/pids.max",
    "kernel settings": "v=$(cat /proc/sys/kernel/panic); echo $v > /proc/sys/kernel/panic",
    "kernel triggers": "echo h > /proc/sysrq-trigger || echo 1 > /proc/sys/vm/compact_memory",
    "kernel memory and messages": "cat /proc/kmsg /proc/kcore | head -c 1 | grep -q .",
    "disks": "mknod /mnt/d b 254 0 && head -c 1 /mnt/d || ls /dev/vda || ls /dev/sda",
    "loading a module": f"python3 -c '{LIBC}exit(libc.syscall(175, 0, 0, 0) != 0)'",
    "clock": "date -s 2000-01-01",
    "host name": f"python3 -c '{LIBC}exit(libc.reboot(0) != -2 and libc.swapon(b\"/x\", 0) != 0)'",
    "leaving the root folder": f"python3 -c '{LIBC}exit(libc.chroot(b\"/\") != 0)'",
    "the server's own files": "touch /run/arise/python/probe || touch /run/arise/arise/sandbox/inside/server.py",
}


def run_all(kind: str, image: Path, commands: dict[str, str], place: Place | None = None) -> dict[str, CommandResult]:
    async def body() -> dict[str, CommandResult]:
        async with pool_of(kind) as pool:
            box = await pool.open(place or Place(dockerfile=image, storage_mb=100, memory_mb=256))
            try:
                return {name: await box.run(command, 20) for name, command in commands.items()}
            finally:
                await box.close()

    return asyncio.run(body())


def test_25_ways_out_are_closed(kind: str, tmp_path: Path, python_image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARISE_PROBE_SECRET", "s3cret")
    (tmp_path / "planted").write_text("host")
    words = {
        "{repository}": os.getcwd(),
        "{planted}": str(tmp_path / "planted"),
        "{shadow}": Path("/etc/shadow").read_text().splitlines()[-1],
    }
    ready = {}
    for name, command in PROBES.items():
        for word, value in words.items():
            command = command.replace(word, value)
        ready[name] = command
    found = run_all(kind, python_image, ready)
    assert len(found) == 25
    assert {name: result.output for name, result in found.items() if result.exit_code == 0} == {}


def test_10_destinations_are_out_of_reach(kind: str, python_image: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0arise-probe-{port}")
        abstract.listen()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            own = probe.getsockname()[0]
        connect = "import socket as s; c = s.socket(s.{}, s.{}); c.settimeout(1); c.{}"
        tries = [
            ("AF_INET", "SOCK_STREAM", f'connect(("127.0.0.1", {port}))'),
            ("AF_INET", "SOCK_STREAM", f'connect(("{own}", {port}))'),
            ("AF_INET6", "SOCK_STREAM", f'connect(("::1", {port}))'),
            ("AF_INET", "SOCK_STREAM", 'connect(("1.1.1.1", 443))'),
            ("AF_INET", "SOCK_STREAM", 'connect(("169.254.169.254", 80))'),
            ("AF_UNIX", "SOCK_STREAM", f'connect("\\0arise-probe-{port}")'),
            ("AF_INET", "SOCK_STREAM", 'connect(("10.0.2.2", 22))'),
            ("AF_INET", "SOCK_DGRAM", 'sendto(b"x", ("8.8.8.8", 53))'),
            ("AF_INET", "SOCK_RAW, 1", 'sendto(b"x", ("8.8.8.8", 0))'),
        ]
        scripts = [connect.format(*each) for each in tries] + ['import socket; socket.getaddrinfo("example.org", 80)']
        found = run_all(kind, python_image, {script: f"python3 -c '{script}'" for script in scripts})
    assert len(found) == 10
    assert {name: result.output for name, result in found.items() if result.exit_code == 0} == {}


def test_limits(kind: str, python_image: Path) -> None:
    """F12, F13, F14, F16: forks, memory, disk, output and time each end at their limit, and the sandbox goes on."""
    forks = (
        "python3 -c '\nimport os, time\nn = 0\ntry:\n  while n < 3000:\n"
        "    if os.fork() == 0: time.sleep(5); os._exit(0)\n    n += 1\nexcept OSError: print(n)\n'"
    )
    found = run_all(
        kind,
        python_image,
        {
            "forks": forks,
            "clear": "for p in /proc/[0-9]*; do grep -q python3 $p/comm && kill -9 ${p#/proc/}; done; true",
            "memory": "python3 -c 'x = b\"x\" * (700 << 20)'",
            "disk": "head -c 300M /dev/zero > /big; stat -c %s /big; rm /big",
            "output": "yes",
            "after": "echo alive",
        },
    )
    assert int(found["forks"].output.split()[-1]) <= 512
    assert found["memory"].exit_code in (137, 1)
    assert found["memory"].ended == "memory" or "MemoryError" in found["memory"].output
    assert int(found["disk"].output.split()[-1]) <= 100 << 20
    assert found["output"].ended == "output"
    assert len(found["output"].output) <= 10 << 20
    assert found["after"].output == "alive\n"


def test_a_command_ends_at_its_deadline(kind: str, python_image: Path) -> None:
    async def body() -> tuple[CommandResult, CommandResult]:
        async with pool_of(kind) as pool:
            box = await pool.open(Place(dockerfile=python_image, storage_mb=100, memory_mb=256))
            slow = await box.run("(setsid sleep 1000 &) ; sleep 1000", 1)
            left = await box.run("ls -d /proc/[0-9]*", 10)
            await box.close()
            return slow, left

    slow, left = asyncio.run(body())
    assert slow.ended == "timeout"
    assert len(left.output.split()) <= 3
