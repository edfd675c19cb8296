"""Compiled parts: a missing compiler is reported once with its cost, and a foreign cache never breaks anything."""

import logging
import subprocess
from pathlib import Path

import pytest

from arise.engines.local import kernel as engine_kernel
from arise.native import build as building
from arise.native.build import build, obstacle

needs_compiler = pytest.mark.skipif(bool(obstacle()), reason="no C compiler")
FLAGS = (("-O0",),)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    building._tell.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "answer.c").write_text("int main(void) { return 7; }\n")
    return folder


def answers(program: Path) -> bool:
    try:
        return subprocess.run([program], check=False).returncode == 7
    except OSError:
        return False


def test_without_a_compiler_one_line_says_what_it_costs(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.INFO, "arise"):
        assert [build(name, sources, FLAGS, answers) for name in ("server", "kernel")] == [None, None]
    (line,) = caplog.messages
    assert line.startswith("no C compiler (cc, gcc, clang) is on the PATH: plain code runs instead of compiled code,")
    assert "3 times the processor time" in line
    assert "apt-get install gcc" in line
    assert not (tmp_path / "cache").exists()


@needs_compiler
def test_a_program_that_does_not_work_is_not_kept_and_the_next_flags_are_tried(sources: Path, cache: Path) -> None:
    assert build("answer", sources, FLAGS, lambda _: False) is None
    assert list((cache / "native").iterdir()) == []
    built = build("answer", sources, (("-no-such-flag",), *FLAGS), answers)
    assert built is not None
    assert [built] == list((cache / "native").iterdir())


@needs_compiler
def test_a_cached_program_that_does_not_run_here_is_compiled_again(sources: Path) -> None:
    made = build("answer", sources, FLAGS, answers)
    assert made is not None
    made.write_bytes(b"\x7fELF from another machine")
    assert build("answer", sources, FLAGS, answers) == made
    assert answers(made)


@needs_compiler
def test_programs_of_two_processors_do_not_share_a_place(sources: Path) -> None:
    one, other = (build("answer", sources, FLAGS, answers, key=flags) for flags in ("avx2 avx512f", "avx2"))
    assert one != other
    described = Path("/proc/cpuinfo").read_text()
    assert engine_kernel._processor() in described, "the key of -march=native is what the kernel says of the processor"


@needs_compiler
def test_a_source_that_does_not_compile_is_reported(sources: Path, caplog: pytest.LogCaptureFixture) -> None:
    (sources / "answer.c").write_text("int main(void) { return missing; }\n")
    with caplog.at_level(logging.INFO, "arise"):
        assert build("answer", sources, FLAGS, answers) is None
    assert "cannot compile the sources of ARISE: plain code runs" in caplog.text
