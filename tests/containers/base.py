"""A base image made on this machine: no registry of images is needed, and nothing of the host is written to.

The root file system is made once by debootstrap and kept below the user's cache directory under a name that says what
went into it. It gets the certificates, the pip and the apt settings of this machine, so that builds can install.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arise.native.build import cache_folder
from arise.sandbox.programs import Program

SUITE = "bookworm"
NAME = "localhost/arise-base"
PYTHON = "localhost/arise-python"
NEEDED = ("podman", "debootstrap", "bwrap", "slirp4netns")
SETTINGS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf", "/etc/apt/apt.conf.d", "/etc/apt/sources.list.d")
HERE = cache_folder() / "tests"


def missing() -> list[str]:
    """What a machine lacks for tests with containers."""
    programs = [name for name in NEEDED if shutil.which(name) is None]
    return programs if os.geteuid() == 0 else [*programs, "root"]


def _settings() -> list[Path]:
    found = [
        path for name in SETTINGS for path in (sorted(Path(name).iterdir()) if Path(name).is_dir() else [Path(name)])
    ]
    return [path for path in found if path.is_file() and path.suffix != ".dpkg-dist"]


def _key() -> str:
    digest = hashlib.sha256(f"{SUITE} minbase 1".encode())
    for path in _settings():
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _root_file_system(tar: Path) -> None:
    """Make the root file system and pack it, whole or not at all."""
    folder = tar.with_suffix(f".{os.getpid()}")
    try:
        line = ["debootstrap", "--variant=minbase", SUITE, str(folder)]
        subprocess.run(line, check=True, capture_output=True)
        for path in _settings():
            target = folder / path.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        shutil.rmtree(folder / "var/cache/apt/archives", ignore_errors=True)
        draft = tar.with_suffix(".draft")
        subprocess.run(["tar", "-C", str(folder), "-cf", str(draft), "."], check=True)
        draft.replace(tar)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def environment() -> dict[str, str]:
    """The variables under which the engine keeps the images of tests apart from the user's."""
    HERE.mkdir(parents=True, exist_ok=True)
    settings = HERE / "storage.conf"
    text = f'[storage]\ndriver="overlay"\ngraphroot="{HERE}/store"\nrunroot="{HERE}/run"\n'
    if not settings.exists() or settings.read_text() != text:
        settings.write_text(text)
    return {"CONTAINERS_STORAGE_CONF": str(settings)}


def base_image() -> str:
    """The name of the base image, made where it is not there yet; NAME is what Dockerfiles of tests start from."""
    name = f"{NAME}:{_key()}"
    with _locked(HERE / "base.lock"):
        settings = Program("podman", {**os.environ, **environment()}).settings()
        there = subprocess.run(["podman", "image", "exists", name], env=settings, check=False)
        if there.returncode:
            tar = HERE / f"base-{_key()}.tar"
            if not tar.exists():
                _root_file_system(tar)
            subprocess.run(
                ["podman", "import", "--quiet", str(tar), name], env=settings, check=True, capture_output=True
            )
            subprocess.run(["podman", "tag", name, f"{NAME}:latest"], env=settings, check=True)
    return name


def python_image() -> str:
    """The name of an image with Python and pytest on top of the base image."""
    name = f"{PYTHON}:{_key()}"
    with _locked(HERE / "python.lock"):
        settings = Program("podman", {**os.environ, **environment()}).settings()
        if subprocess.run(["podman", "image", "exists", name], env=settings, check=False).returncode:
            packages = "apt-get update && apt-get install -y --no-install-recommends python3 python3-pytest"
            lines = f"FROM {base_image()}\nRUN {packages}\n"
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "Dockerfile").write_text(lines)
                line = ["podman", "build", "--quiet", "--tag", name, folder]
                subprocess.run(line, env=settings, check=True, capture_output=True)
            subprocess.run(["podman", "tag", name, f"{PYTHON}:latest"], env=settings, check=True)
    return PYTHON


def main() -> None:
    """Make the images before the tests ask for them."""
    if missing():
        print(f"no images for tests of containers: {', '.join(missing())} missing")
    else:
        os.environ.update(environment())
        python_image()


if __name__ == "__main__":
    main()
