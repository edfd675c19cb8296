"""The fast path: an attempt on the root file system of an image, in bubblewrap, without a container engine.

The image's folders are the lower layers of an overlay in a separate mount namespace, so the kernel unmounts everything
when the sandbox ends, however it ends. Users keep their numeric ids in a separate user namespace.
"""

import errno
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from arise.native.build import cache_folder
from arise.sandbox.layers import User, in_user_namespace
from arise.sandbox.layout import Layout, find_bubblewrap, proc_arguments
from arise.sandbox.limits import MIB
from arise.sandbox.runtime import runtime

# Docker's default capabilities, without those to create devices and to leave a root folder.
CAPABILITIES = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"),
    *("CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_AUDIT_WRITE", "CAP_SETFCAP"),
)
WATCHING = ("CAP_SYS_PTRACE", "CAP_SYS_RESOURCE")
"""What the guard needs to read the memory of a test.sh that runs as another user, and to mark its processes."""
IN_MEMORY = 256 * MIB
"""Up to this size the changes of an attempt are kept in memory, beyond it in a file."""
MAX_OPTIONS = 3800
"""Longest mount options: the kernel gives them one page of memory."""
_MOUNT = """set -e
cd "$1"
if [ -e disk ]; then
  mount -o loop,noatime disk layers
  rm disk
elif [ "$2" -gt 0 ]; then
  mount -t tmpfs -o "size=$2,mode=0755" tmpfs layers
fi
mkdir layers/upper layers/work
chmod 755 layers/upper
mount -t overlay overlay -o "lowerdir=$3,upperdir=layers/upper,workdir=layers/work$4" root
shift 4
exec "$@"
"""


@dataclass(frozen=True)
class ImageLayout(Layout):
    """The layout of a sandbox on an image; every field of `Layout` keeps its meaning."""

    scratch: Path = Path()
    """The folder of the host in which the layers are mounted."""
    lower: tuple[str, ...] = ()
    """The folders below the attempt's own layer, topmost first."""
    env: Mapping[str, str] = field(default_factory=dict)
    user: User = field(default_factory=User)
    namespace: int = -1
    passed: tuple[int, ...] = ()
    """Descriptors that the mount needs, `namespace` among them."""
    added: tuple[str, ...] = ()
    """Programs of the attempt in system folders, for the guard of test.sh."""
    watching: bool = False
    inside: int = -1
    """The mount namespace in which the lower layers are found, where it is not that of the host."""

    @property
    def writable(self) -> tuple[str, ...]:
        return ("/", *self.folders)

    @property
    def upper(self) -> Path:
        """Return the attempt's own layer, as seen from the mount namespace of bwrap."""
        return self.scratch / "layers" / "upper"

    @property
    def prefix(self) -> list[str]:
        """Return the command that mounts the layers and executes bwrap."""
        own = ",userxattr" if in_user_namespace() else ""
        size = str(self.limits.disk_bytes if self.limits.in_memory else 0)
        enter = ["nsenter", f"--mount=/proc/self/fd/{self.inside}", "--"] if self.inside >= 0 else []
        launcher = [*enter, "unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, "mount"]
        return [*launcher, str(self.scratch), size, ":".join(self.lower), own]

    @property
    def closing(self) -> list[str]:
        return []

    @property
    def guard_extras(self) -> dict[str, object]:
        return {"added": self.added}

    def server(self, *arguments: str) -> list[str]:
        return runtime().command(*arguments, guard=self.guard_settings)

    @cached_property
    def arguments(self) -> list[str]:
        line = [find_bubblewrap(), "--userns", str(self.namespace), "--unshare-ipc", "--unshare-pid", "--unshare-net"]
        line += ["--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox", "--die-with-parent"]
        line += ["--new-session", "--as-pid-1", "--cap-drop", "ALL"]
        for name in (*CAPABILITIES, *(WATCHING if self.watching else ())):
            line += ["--cap-add", name]
        line.append("--clearenv")
        for name, value in self.env.items():
            line += ["--setenv", name, value]
        line += ["--bind", str(self.scratch / "root"), "/", *proc_arguments(), "--dev", "/dev"]
        line += ["--size", str(64 * MIB), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
        line += ["--tmpfs", "/run/arise"]
        for path, inner in runtime().shown:
            line += ["--ro-bind", path, inner]
        line += [*self.mounted, "--remount-ro", "/run/arise"]
        for place in self.folders:
            line += ["--size", str(self.limits.tmp_bytes), "--perms", "1777", "--tmpfs", place]
        return [*line, "--perms", "0755", "--dir", self.workdir, "--chdir", self.workdir]

    def prepare(self) -> None:
        """Create the mount points, and a disk file for the changes if they are too large for memory."""
        self.scratch.mkdir(0o700, exist_ok=True)
        for name in ("layers", "root"):
            (self.scratch / name).mkdir()
        if not self.limits.in_memory and not in_user_namespace():  # which cannot mount a disk
            copy_sparse(empty_disk(self.limits.disk_bytes), self.scratch / "disk")


def copy_sparse(source: Path, target: Path) -> None:
    """Copy a file without its holes: an empty disk of 10 GB holds a few hundred kilobytes."""
    with source.open("rb") as file, target.open("wb") as copy:
        size, at = os.fstat(file.fileno()).st_size, 0
        copy.truncate(size)
        while at < size:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole is left
                    return
                raise
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            copy.seek(begin)
            copy.write(os.pread(file.fileno(), at - begin, begin))


def empty_disk(size: int) -> Path:
    """Return an empty file system of the given size as a sparse file, created once per size."""
    path = cache_folder() / "disks" / f"{size}.ext4"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.truncate(size)
    options = ["-q", "-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard"]
    subprocess.run(["mkfs.ext4", *options, str(draft)], check=True, capture_output=True)
    draft.replace(path)
    return path
