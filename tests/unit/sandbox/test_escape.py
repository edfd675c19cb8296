"""F11 and F15: what a command inside cannot see, reach or become."""

import asyncio
import os
import platform
import socket
from pathlib import Path

import pytest

import arise
from arise.sandbox import BubblewrapPool, SandboxUnavailable

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


# (x86-64 number, errno): what must not get through, and what programs need.
CALLS = {
    "open_tree": (428, 1),
    "open_tree_attr": (467, 1),
    "move_mount": (429, 1),
    "fsopen": (430, 1),
    "mount_setattr": (442, 1),
    "io_uring_setup": (425, 1),
    "userfaultfd": (323, 1),
    "fanotify_init": (300, 1),
    "syslog": (103, 1),
    "modify_ldt": (154, 1),
    "io_setup": (206, 38),
    "clone3": (435, 38),
    "quotactl_fd": (443, 38),
    "memfd_secret": (447, 38),
    "cachestat": (451, 38),
    "statmount": (457, 38),
    "listmount": (458, 38),
    "lsm_list_modules": (461, 38),
    "listns": (470, 38),
    "one that no kernel has yet": (999, 38),
    "pidfd_open": (434, 22),
    "openat2": (437, 7),
    "fchmodat2": (452, 22),
    "close_range": (436, 22),
}


def test_new_calls_do_not_exist_inside_until_they_are_named() -> None:
    # Arguments that every call refuses, so that those that get through fail in their own way.
    script = (
        LIBC
        + "[(libc.syscall(n, -1, 0, 0, 0xffffff, 0, 0), print(ctypes.get_errno())) for n in "
        + f"{[number for number, _ in CALLS.values()]}]"
    )

    async def run() -> str:
        async with BubblewrapPool(1) as pool:
            return (await (await pool.open()).run(f"python3 -c '{script}'", 10)).output

    assert platform.machine() == "x86_64", "the numbers are those of x86-64"
    found = dict(zip(CALLS, map(int, asyncio.run(run()).split()), strict=True))
    assert found == {name: error for name, (_, error) in CALLS.items()}


def test_sockets_are_of_families_that_namespaces_confine() -> None:
    script = """import socket, sys
for family in range(46):
    for call in (socket.socket, socket.socketpair):
        for kind, protocol in ((1, 0), (2, 0), (3, 0), (3, 3), (5, 0), (3, 16), (2, 9)):
            try:
                made = call(family, kind, protocol)
                print(family, protocol)
            except OSError:
                pass
"""

    async def run() -> str:
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            await box.run(f"cat > /tmp/probe.py <<'END'\n{script}\nEND", 5)
            return (await box.run("python3 /tmp/probe.py | sort -u", 20)).output

    found = {tuple(map(int, line.split())) for line in asyncio.run(run()).splitlines()}
    assert {family for family, _ in found} == {1, 2, 10, 16}
    assert {protocol for family, protocol in found if family == 16} == {0}


def test_programs_still_find_out_about_the_machine() -> None:
    async def run() -> list[int]:
        commands = ("nproc", "free", "uptime", "ps aux", "df", "python3 -c 'import os; os.getloadavg()'", "tail -n1 $0")
        async with BubblewrapPool(1) as pool:
            box = await pool.open()
            return [(await box.run(command.replace("$0", "/etc/passwd"), 10)).exit_code for command in commands]

    assert set(asyncio.run(run())) == {0}


def test_proc_reveals_nothing_of_boot_disks_and_devices() -> None:
    names = "cmdline partitions diskstats modules swaps interrupts iomem ioports kallsyms locks keys bus driver scsi"
    script = f"for name in {names}; do test -d /proc/$name && ls -A /proc/$name || cat /proc/$name; done 2> /dev/null"

    async def run() -> str:
        async with BubblewrapPool(1) as pool:
            return (await (await pool.open()).run(script, 10)).output

    assert asyncio.run(run()) == ""


def seen(read_only: tuple[str, ...], hidden: tuple[str, ...], *commands: str) -> list[str]:
    """What commands print in a sandbox that shows and hides these paths."""

    async def run() -> list[str]:
        async with BubblewrapPool(1, read_only=read_only, hidden=hidden) as pool:
            box = await pool.open()
            return [(await box.run(f"{command} 2> /dev/null", 10)).output for command in commands]

    return asyncio.run(run())


def test_what_is_hidden_below_usr_cannot_be_seen(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr/share/doc")
    looks = ("ls /usr/share/doc", "ls /usr/share/doc/bash", "ls -d /usr/share/misc")
    assert seen((), (), *looks)[0] != ""
    for hidden in ("/usr/share/doc", str(tmp_path / "link"), "/usr/share/../share/doc"):
        assert seen((), (hidden,), *looks) == ["", "", "/usr/share/misc\n"]


def test_what_is_hidden_below_a_shown_folder_cannot_be_seen(tmp_path: Path) -> None:
    (tmp_path / "tools/corpus/tests").mkdir(parents=True)
    for name in ("tools/corpus/tests/answer", "tools/answer", "tools/bin"):
        (tmp_path / name).write_text("42\n")
    names = ("tools/corpus", "tools/corpus/tests", "tools/corpus/tests/answer", "tools/answer", "absent")
    hidden = tuple(f"{tmp_path}/{name}" for name in names)
    look = f"cd {tmp_path}/tools; cat answer; ls corpus; cat corpus/tests/answer; cat bin"
    assert seen((f"{tmp_path}/tools",), hidden, f"({look})") == ["42\n"]


def test_arise_itself_cannot_be_read_where_it_lies_in_a_shown_folder() -> None:
    package = Path(arise.__file__).parent
    look = f"ls {package.parent}; ls -A {package}"
    assert seen((str(package.parent),), (), look)[0].split()[0] == "arise"
    assert "world" not in seen((str(package.parent),), (), look)[0]


@pytest.mark.parametrize("hidden", ["/usr", "/usr/bin", "/bin"])
def test_what_commands_need_cannot_be_hidden_and_is_refused(hidden: str) -> None:
    with pytest.raises(SandboxUnavailable, match="move your runs and tasks to a separate folder"):
        seen((), (hidden,))
