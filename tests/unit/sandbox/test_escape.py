"""F11 and F15: what a command inside cannot see, reach or become."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from arise.sandbox import BubblewrapPool

LIBC = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); "

# Each exits with 0 only if it got through.
PROBES = {
    "host password hashes": "cat /etc/shadow",
    "host home folders": "ls -d /root /home",
    "host repository": "ls {repository}",
    "host temporary file": "cat {planted}",
    "host environment": "env | grep ARISE_PROBE_SECRET",
    "host environment by process 1": "cat /proc/1/environ",
    "host files by process 1": "ls /proc/1/root/",
    "descriptors of process 1": "ls /proc/1/fd",
    "memory of process 1": "head -c 1 /proc/1/mem",
    "tracing process 1": f"python3 -c '{LIBC}exit(libc.ptrace(16, 1, 0, 0) != 0)'",
    "host processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 12",
    "mounting": f'python3 -c \'{LIBC}exit(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0)\'',
    "new user namespace": "unshare --user --map-root-user true",
    "kernel keyring": f'python3 -c \'{LIBC}exit(libc.syscall(248, b"user", b"a", b"b", 1, -3) < 0)\'',
    "container engine": "ls /var/run/docker.sock || ls /run/docker.sock || ls /run/podman",
    "control groups": "ls /sys/fs/cgroup",
    "system folder": "touch /usr/bin/probe",
    "root folder and /etc": "touch /probe || touch /etc/probe || touch /dev/probe",
    "becoming root": "python3 -c 'import os; os.setuid(0)'",
    "capabilities": "grep -E '^Cap(Eff|Prm|Bnd):' /proc/self/status | grep -v 0000000000000000",
    "gaining privileges by a program": "grep NoNewPrivs /proc/self/status | grep -v 1",
    "kernel settings": "v=$(cat /proc/sys/kernel/panic); echo $v > /proc/sys/kernel/panic",
    "kernel triggers": "echo h > /proc/sysrq-trigger || echo 1 > /proc/sys/vm/compact_memory",
    "kernel memory and messages": "cat /proc/kmsg /proc/kcore /proc/kpageflags /proc/slabinfo | head -c 1 | grep -q .",
    "disks": "mknod /tmp/d b 254 0 || ls /dev/vda || ls /dev/sda || chroot / true",
}


def test_25_ways_out_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARISE_PROBE_SECRET", "s3cret")
    planted = tmp_path / "planted"
    planted.write_text("host")

    async def probe() -> dict[str, int]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            codes = {}
            for name, command in PROBES.items():
                ready = command.replace("{repository}", os.getcwd()).replace("{planted}", str(planted))
                codes[name] = (await box.run(ready, 10)).exit_code
            return codes

    codes = asyncio.run(probe())
    assert len(codes) == 25
    assert [name for name, code in codes.items() if code == 0] == []
    assert [name for name, code in codes.items() if code == 127] == [], (
        "a probe whose program is missing proves nothing"
    )


def test_a_probe_that_gets_through_would_be_seen() -> None:
    async def run() -> int:
        async with BubblewrapPool(1) as pool:
            return (
                await (await pool.open()).run("ls /proc/self/fd && cat /etc/passwd && touch /app/x /tmp/x", 10)
            ).exit_code

    assert asyncio.run(run()) == 0


CONNECT = "import socket as s; c = s.socket(s.{family}, s.{kind}); c.settimeout(1); c.{call}"
REFUSALS = ("OSError", "ConnectionRefused", "PermissionError", "FileNotFound", "TimeoutError", "socket.gaierror")


def test_10_destinations_are_out_of_reach(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
    ):
        port = four.getsockname()[1]
        abstract.bind(f"\0arise-probe-{port}")
        named.bind(str(tmp_path / "socket"))
        for server in (abstract, named):
            server.listen()
        tcp = [
            ("AF_INET", f'connect(("127.0.0.1", {port}))'),
            ("AF_INET", f'connect(("{_own_address()}", {port}))'),
            ("AF_INET6", f'connect(("::1", {port}))'),
            ("AF_INET", 'connect(("1.1.1.1", 443))'),
            ("AF_INET", 'connect(("169.254.169.254", 80))'),
            ("AF_UNIX", f'connect("\\0arise-probe-{port}")'),
            ("AF_UNIX", f'connect("{tmp_path}/socket")'),
        ]
        scripts = [CONNECT.format(family=family, kind="SOCK_STREAM", call=call) for family, call in tcp]
        scripts.append(CONNECT.format(family="AF_INET", kind="SOCK_DGRAM", call='sendto(b"x", ("8.8.8.8", 53))'))
        scripts.append(CONNECT.format(family="AF_INET", kind="SOCK_RAW, 1", call='sendto(b"x", ("8.8.8.8", 0))'))
        scripts.append('import socket; socket.getaddrinfo("example.org", 80)')
        assert _reachable(scripts) == []
        assert len(scripts) == 10


def _own_address() -> str:
    """An address of this machine that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _reachable(scripts: list[str]) -> list[str]:
    async def run() -> list[str]:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            results = {}
            for script in scripts:
                await box.run(f"cat > /tmp/probe.py <<'END'\n{script}\nEND", 5)
                results[script] = await box.run("python3 /tmp/probe.py", 10)
            assert all(r.output.splitlines()[-1].startswith(REFUSALS) for r in results.values())
            return [script for script, r in results.items() if r.exit_code == 0]

    return asyncio.run(run())
