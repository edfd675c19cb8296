"""Network access for a sandbox without its own network: one address, a list of hosts, or the public network."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from arise.ports import SandboxLost
from arise.sandbox.proxy import VARIABLES, Proxy
from arise.sandbox.reach import Doors

RESOLVER = "nameserver 10.0.2.3"
"""The line of /etc/resolv.conf for the address at which slirp4netns answers DNS queries."""
SECONDS = 20.0


def networks() -> frozenset[str]:
    """Return the networks available to sandboxes on this machine."""
    public = {"public"} if shutil.which("slirp4netns") else set()
    return frozenset({"none", "endpoint", "allow"} | public)


def allowed_hosts(network: str) -> Sequence[str] | None:
    """Return the hosts of `allow:a,b`; None for any other network."""
    return network.removeprefix("allow:").split(",") if network.startswith("allow:") else None


@dataclass
class Network:
    """The connections out of one sandbox, closed together — `env = await Network().connect(pid, "public")`."""

    doors: Doors = field(default_factory=Doors)
    _proxy: Proxy | None = None
    _attached: "subprocess.Popen[bytes] | None" = None
    _alive: int = -1

    async def connect(self, pid: int, network: str) -> dict[str, str]:
        """Connect the network namespace of a process to `network`; return variables for its commands."""
        if network == "public":
            await asyncio.to_thread(self._attach, pid)
        elif (hosts := allowed_hosts(network)) is not None:
            self._proxy = await Proxy(hosts).start()
            url = await self.doors.open(pid, self._proxy.url)
            return dict.fromkeys(VARIABLES, url)
        return {}

    def _attach(self, pid: int) -> None:
        """Start slirp4netns, which exits when this process closes its end of a pipe or dies."""
        program = shutil.which("slirp4netns")
        if program is None:
            raise SandboxLost("a public network needs slirp4netns: apt-get install slirp4netns")
        ended, self._alive = os.pipe()
        ready, told = os.pipe()
        line = [program, "--configure", "--mtu=65520", "--disable-host-loopback", "--enable-seccomp"]
        line += ["--exit-fd", str(ended), "--ready-fd", str(told), str(pid), "tap0"]
        try:
            self._attached = subprocess.Popen(
                line,
                pass_fds=[ended, told],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(ended)
            os.close(told)
        try:
            if os.read(ready, 1) != b"1":
                raise SandboxLost("slirp4netns could not give the sandbox a network")
        finally:
            os.close(ready)

    def close(self) -> None:
        """Close every connection."""
        self.doors.close()
        if self._proxy is not None:
            self._proxy.close()
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        if self._attached is not None:
            self._attached.kill()
            self._attached.wait()
            self._attached = None
