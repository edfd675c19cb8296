"""Copies of hostile folders (F30): nothing is followed, and a link is kept only where it cannot become a window."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arise.ports import TreeRefused
from arise.sandbox.seccomp import filter_program
from arise.sandbox.tree import (
    FOLDER,
    MAX_DEPTH,
    MAX_ENTRIES,
    copy_tree,
    read_plain_file,
    stays_inside,
)

BASE = Path(tempfile.gettempdir())


def copied(source: Path, target: Path) -> tuple[str, ...]:
    target.mkdir()
    fd = os.open(target, FOLDER)
    try:
        return copy_tree(source, fd, "/app")
    finally:
        os.close(fd)


def as_user(action: Callable[[], bool], owned: list[Path], passed: list[Path]) -> bool:
    """Whether an action succeeds for somebody whom modes bind, as they do not bind root."""
    if os.getuid():
        return action()
    for path in owned:
        os.chown(path, 65534, 65534)
    for path in passed:
        path.chmod(0o755)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setresuid(65534, 65534, 65534)
            status = int(not action())
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def test_files_folders_modes_and_links_come_along(source: Path, tmp_path: Path) -> None:
    (source / "d/e").mkdir(parents=True)
    (source / "d/e/run.sh").write_text("echo")
    (source / "d/e/run.sh").chmod(0o4755)
    os.link(source / "d/e/run.sh", source / "same")
    (source / "d/link").symlink_to("../same")
    (source / "python").symlink_to("/usr/bin/python3")
    (source / "d").chmod(0o500)
    target = tmp_path / "target"
    assert copied(source, target) == ()
    assert (target / "d/e/run.sh").stat().st_mode & 0o7777 == 0o755, "set-user-id is not carried over"
    assert (target / "d/e/run.sh").stat().st_ino == (target / "same").stat().st_ino
    assert (target / "d").stat().st_mode & 0o777 == 0o500
    assert os.readlink(target / "python") == "/usr/bin/python3"
    assert (target / "d/link").read_text() == "echo"


@pytest.mark.parametrize(
    "link",
    ["/tests/expected", "/logs/verifier/reward.txt", "../x", "/etc/passwd", "/proc/self/environ", "/dev/zero",
     "usr/../../tests/expected", "/usr/../tests/expected", "/app/../tests", "//tests", "/", "./../tests",
     "a/../../x", "/usrx", "/apps/x"],
)  # fmt: skip
def test_links_out_are_left_out(link: str, source: Path, tmp_path: Path) -> None:
    (source / "answer").symlink_to(link)
    (left_out,) = copied(source, tmp_path / "target")
    assert "answer (a link to" in left_out
    assert os.listdir(tmp_path / "target") == []


def test_what_an_agent_locked_comes_along_and_can_be_read(source: Path, tmp_path: Path) -> None:
    (source / "d").mkdir()
    (source / "d/secret").write_text("kept")
    (tmp_path / "target").mkdir()
    for path, mode in ((source / "d/secret", 0o000), (source / "d", 0o100), (source, 0o000)):
        path.chmod(mode)

    def copy() -> bool:
        fd = os.open(tmp_path / "target", FOLDER)
        return copy_tree(source, fd, "/app", left_by_agent=True) == ()

    above = [path for path in (tmp_path, *tmp_path.parents) if path != BASE and path.is_relative_to(BASE)]
    assert as_user(copy, [source, source / "d", source / "d/secret", tmp_path / "target"], above)
    assert (tmp_path / "target/d").stat().st_mode & 0o777 == 0o500
    assert (tmp_path / "target/d/secret").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "target/d/secret").stat().st_size == 4


def test_special_files_are_left_out(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe")
    assert copied(source, tmp_path / "target") == ("pipe (not a file, folder or link)",)


def test_sparse_files_stay_sparse(source: Path, tmp_path: Path) -> None:
    with open(source / "sparse", "wb") as file:
        file.truncate(2**33)
        file.seek(2**32)
        file.write(b"middle")
    assert copied(source, tmp_path / "target") == ()
    info = (tmp_path / "target/sparse").stat()
    assert info.st_size == 2**33
    assert info.st_blocks * 512 < 2**20
    with open(tmp_path / "target/sparse", "rb") as file:
        file.seek(2**32)
        assert file.read(6) == b"middle"


def test_depth_and_number_are_bounded(source: Path, tmp_path: Path) -> None:
    deep = source
    for _ in range(MAX_DEPTH):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert copied(source, tmp_path / "target") == ()
    (deep / "one more").mkdir()
    with pytest.raises(TreeRefused, match=f"more than {MAX_DEPTH} folders deep"):
        copied(source, tmp_path / "deep")
    many = tmp_path / "many"
    for number in range(MAX_ENTRIES // 1000):
        (many / str(number)).mkdir(parents=True)
        for name in range(1000):
            (many / str(number) / str(name)).touch()
    with pytest.raises(TreeRefused, match=f"more than {MAX_ENTRIES} files"):
        copied(many, tmp_path / "many-copied")


def test_hard_links_deeper_than_a_path_can_name(source: Path, tmp_path: Path) -> None:
    here = os.open(source, FOLDER)
    for _ in range(40):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, FOLDER, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("first", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.link("first", "second", src_dir_fd=here, dst_dir_fd=here)
    os.close(here)
    assert copied(source, tmp_path / "target") == ()
    for folder in (source, tmp_path / "target"):  # the name of no file in it fits a path, so pytest could not remove it
        subprocess.run(["rm", "-r", str(folder)], check=True)


def test_names_that_are_not_utf8_come_along_and_can_be_said(source: Path, tmp_path: Path) -> None:
    os.close(os.open(os.fsencode(source) + b"/\xff\n.txt", os.O_CREAT | os.O_WRONLY))
    os.symlink(b"/etc/\xfe", os.fsencode(source) + b"/\xfd")
    (left_out,) = copied(source, tmp_path / "target")
    assert os.listdir(os.fsencode(tmp_path / "target")) == [b"\xff\n.txt"]
    assert left_out.encode() == "� (a link to /etc/�)".encode()


PARTS = st.sampled_from(["..", ".", "", "a", "b", "link", "usr", "app", "tests"])


@given(parts=st.lists(PARTS, min_size=1, max_size=6), depth=st.integers(0, 3), absolute=st.booleans())
def test_a_kept_link_never_resolves_outside(parts: list[str], depth: int, absolute: bool) -> None:
    link = ("/" if absolute else "") + "/".join(parts)
    if not stays_inside(link, depth, "/app"):
        return
    start = "/app" + "/a" * depth
    # Any name on the way may itself be a link to any allowed place, so `..` after one is never allowed.
    names = [part for part in parts if part not in ("", ".")]
    after_first_name = names[next((i for i, p in enumerate(names) if p != ".."), len(names)) :]
    assert ".." not in after_first_name
    resolved = os.path.normpath("/" + (link if absolute else f"{start}/{link}").lstrip("/")) + "/"
    assert resolved.startswith(("/app/", "/usr/"))


def test_reading_takes_plain_small_files_only(source: Path) -> None:
    (source / "plain").write_text("1")
    (source / "large").write_text("1" * 100)
    (source / "link").symlink_to("plain")
    os.mkfifo(source / "pipe")
    (source / "folder").mkdir()
    fd = os.open(source, FOLDER)
    found = {name: read_plain_file(fd, name, 50) for name in ("plain", "large", "link", "pipe", "folder", "absent")}
    os.close(fd)
    assert found == {"plain": b"1", "large": None, "link": None, "pipe": None, "folder": None, "absent": None}


def test_filter_exists_for_known_machines_only() -> None:
    assert filter_program("x86_64") != filter_program("aarch64")
    assert filter_program("riscv64") is None
