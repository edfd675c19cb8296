"""Images without root: refused with the remedy, and the remedy works."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arise.sandbox.choose import image_kind, why_no_images
from tests.containers import base
from tests.containers.tasks import write

USER = 61234
"""A user that nothing else on this machine has; it exists in a mount namespace of the test only."""
FIRST = 1_200_000
TASKS = ("user", "agent-user", "network-none", "network-public", "separate-verifier", "steps")
_AS_USER = f"""set -e
for name in passwd group subuid subgid; do mount --bind "$1/$name" "/etc/$name"; done
cd "$1"
exec setpriv --reuid {USER} --regid {USER} --clear-groups env -i "PATH=$PATH" HOME="$1/home" XDG_RUNTIME_DIR="$1/run" \\
  PYTHONPATH="$2" PYTHONDONTWRITEBYTECODE=1 NO_COLOR=1 bash -c "$3"
"""


def test_without_root_images_are_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert image_kind("auto") == (None, "only root can mount the file system that an attempt in an image leaves")
    assert "podman unshare arise" in why_no_images("auto")[1]
    assert why_no_images("docker")[1] == "run ARISE as root" or image_kind("docker")[0] is None


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home for the user, and the system's files that name it."""
    folder = Path("/tmp", f"arise-rootless-{os.getpid()}")
    for name in ("home/.config/containers", "run", "tasks"):
        (folder / name).mkdir(parents=True)
    (folder / "home/.config/containers/storage.conf").write_text('[storage]\ndriver = "overlay"\n')
    (folder / "passwd").write_text(
        f"{Path('/etc/passwd').read_text()}rootless:x:{USER}:{USER}::{folder}/home:/bin/sh\n"
    )
    (folder / "group").write_text(f"{Path('/etc/group').read_text()}rootless:x:{USER}:\n")
    for name in ("subuid", "subgid"):
        (folder / name).write_text(f"rootless:{FIRST}:65536\n")
    for name in TASKS:
        write(name, folder / "tasks")
    base.base_image()
    shutil.copy(next(base.HERE.glob(f"base-{base._key()}.tar")), folder / "base.tar")
    for path in (folder / "home", folder / "run"):
        subprocess.run(["chown", "-R", f"{USER}:{USER}", str(path)], check=True)
    (folder / "run").chmod(0o700)
    yield folder
    left = [int(p.name) for p in Path("/proc").glob("[0-9]*") if p.exists() and p.stat().st_uid in (USER, FIRST)]
    for pid in left:  # podman keeps one process that holds the namespace
        os.kill(pid, 9)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_ordinary_user_checks_tasks_in_podmans_namespace(home: Path) -> None:
    if shutil.which("newuidmap") is None or shutil.which("setpriv") is None:
        pytest.skip("rootless podman needs newuidmap: apt-get install uidmap")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    source = ":".join([str(Path.cwd() / "src"), *packages])
    python = "/usr/bin/python3 -m arise.cli.main"
    commands = f"podman import --quiet base.tar {base.NAME} && {python} doctor | grep images; "
    commands += f"podman unshare {python} tasks check tasks"
    line = ["unshare", "--mount", "--propagation", "private", "bash", "-c", _AS_USER, "as-user"]
    done = subprocess.run(
        [*line, str(home), source, commands], capture_output=True, text=True, timeout=1500, check=False
    )
    assert "no task with an image can run: only root can mount" in done.stdout, done
    assert f"{len(TASKS)} of {len(TASKS)} tasks are sound" in done.stdout, done
