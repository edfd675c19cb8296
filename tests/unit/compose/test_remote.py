"""Engines on other processes: what keeps a run from starting is one message with its remedy; nothing is started."""

import asyncio
import json
import re
import socket
import subprocess
from pathlib import Path
from typing import cast

import psutil
import pytest

from arise.compose.policies import check_remote, open_engine
from arise.compose.remote import _require_flash_attention, _work_folder
from arise.config import ArealConfig, Config, VerlConfig
from arise.config.file import load_config
from arise.engines.local.models import save
from arise.engines.local.small_model import small_model
from arise.errors import AriseError
from arise.ports import SandboxPool
from tests.stub_environments import make_environment
from tests.unit.engines.vllm.fake import FakeVllm

CORPUS = ["count the words of every file " * 20]
TEMPLATE = "chat_template.jinja"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with heads of 64 values."""
    folder = tmp_path_factory.mktemp("models") / "wide"
    made = small_model(CORPUS, vocabulary=320, hidden=64, layers=1, heads=1, kv_heads=1, context_length=256)
    save(made.model, made.tokenizer, folder)
    return folder


def changed(model: Path, folder: Path, **facts: int) -> Path:
    """A copy without a chat template where no fact of its configuration changes."""
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    if facts:
        found = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(found | facts))
    else:
        (folder / TEMPLATE).unlink()
    return folder


def configured(kind: str, model: Path | None, *changes: str) -> tuple[ArealConfig | VerlConfig, Config]:
    shape = ("model.kind='pretrained'", f"model.name='{model}'", "model.lora_rank=0") if model else ()
    config = load_config(None, [f"policy.kind='{kind}'", "policy.device='cpu'", *shape, *changes])
    assert isinstance(config.policy, ArealConfig | VerlConfig)
    return config.policy, config


def refused(kind: str, model: Path | None, *changes: str) -> str:
    """The message of a run and of `arise doctor`, which agree; nothing was started."""
    chosen, config = configured(kind, model, *changes)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(AriseError) as found:
        asyncio.run(open_engine(config, cast(SandboxPool, None)))  # nothing comes so far that it needs a sandbox
    with pytest.raises(ValueError, match=r".") as seen:
        asyncio.run(check_remote(chosen, config))
    assert str(seen.value).rpartition(": ")[2] == found.value.remedy
    assert not {child.pid for child in psutil.Process().children(recursive=True)} - before
    return f"{found.value.what} | {found.value.remedy}"


@pytest.mark.parametrize("kind", ["areal", "verl"])
def test_a_missing_library_names_its_command_for_this_device(cache: Path, model: Path, kind: str) -> None:
    said = refused(kind, model)
    assert (
        said == f"{kind} is not installed in {cache}/engines/{kind} | run `arise engines install {kind} --device cpu`"
    )
    make_environment(cache, kind)
    assert "run `arise engines install vllm --device cpu`" in refused(kind, model)


def test_other_versions_and_the_build_for_another_device_are_named(cache: Path, model: Path) -> None:
    make_environment(cache, "areal", version="0.9")
    assert "holds areal 0.9, ARISE works with 1.0.4" in refused("areal", model)
    make_environment(cache, "verl")
    make_environment(cache, "vllm", device="cuda")
    assert f"{cache}/engines/vllm holds vllm for cuda, policy.device is 'cpu'" in refused("verl", model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["policy.sampler.cache_gib=9000.0"], r"need about 9\d\d\d.* GiB of memory.*less policy.sampler.cache_gib"),
        (["model.lora_rank=700"], "adapters up to rank 512, not 700 | lower model.lora_rank"),
        (["policy.device='cuda'"], r"need 2 GPUs, this machine has \d.*policy.device = 'cpu'"),
    ],
)
def test_too_little_memory_and_what_the_server_lacks(
    cache: Path, model: Path, changes: list[str], message: str
) -> None:
    for name in ("areal", "vllm"):
        make_environment(cache, name, "cuda" if "cuda" in changes[0] else "cpu")
    assert re.search(message.replace(" | ", r" \| "), refused("areal", model, *changes))


def test_a_model_that_the_server_cannot_serve(cache: Path, model: Path, tmp_path: Path) -> None:
    for name in ("verl", "vllm"):
        make_environment(cache, name)
    said = refused("verl", changed(model, tmp_path / "silent"))
    assert "the tokenizer has no chat template" in said
    assert "chat_template.jinja" in said
    said = refused("verl", changed(model, tmp_path / "narrow", num_attention_heads=4, head_dim=16))
    assert "attention heads have 16 values" in said
    assert "choose another model" in said


def test_what_needs_no_model_is_refused_before_a_warm_start(cache: Path) -> None:
    for name in ("areal", "vllm"):
        make_environment(cache, name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    small = ("model.kind='small'", "model.heads=2")
    said = refused("areal", None, *small, f"policy.sampler.addresses=['{address}']")
    assert f"no vLLM server answers at {address}" in said
    assert "start the servers that policy.sampler.addresses names, with `arise engines serve`" in said
    assert "attention heads have 16 values" in refused("areal", None, "model.kind='small'", "model.heads=8")
    assert "GiB of memory" in refused("areal", None, *small, "policy.sampler.cache_gib=9000.0")
    assert not (cache / "starts").exists()


def test_servers_of_another_release_or_without_their_key_are_named(
    cache: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("areal", "vllm"):
        make_environment(cache, name)
    with FakeVllm() as server:
        chosen, config = configured("areal", model, f"policy.sampler.addresses=['{server.address}']")
        assert asyncio.run(check_remote(chosen, config))
        server.release = "0.31.0"
        said = refused("areal", model, f"policy.sampler.addresses=['{server.address}']")
        assert f"{server.address} runs vLLM 0.31.0, ARISE works with 0.32.0" in said
        server.release = ""
        assert "runs vLLM of no release" in refused("areal", model, f"policy.sampler.addresses=['{server.address}']")
        keyed = f"policy.sampler.addresses=['{server.address}']", "policy.sampler.key_env='NO_SUCH_KEY'"
        said = refused("areal", model, *keyed)
    assert "policy.sampler.key_env names NO_SUCH_KEY, which is not set | export it with the key of the servers" in said


def test_a_folder_a_launcher_and_a_name_that_cannot_be_used(cache: Path, model: Path, tmp_path: Path) -> None:
    for name in ("verl", "vllm"):
        make_environment(cache, name)
    (tmp_path / "file").write_text("")
    said = refused("verl", model, f"policy.weights_dir='{tmp_path / 'file'}'")
    assert f"policy.weights_dir {tmp_path / 'file'} cannot be written" in said
    assert "name another folder" in said
    said = refused("verl", model, "policy.launch=['no-such-srun']", "policy.host='127.0.0.1'")
    assert "policy.launch starts no-such-srun, which is not on this machine | name its path" in said
    said = refused("verl", model, "policy.launch=['sh']", "policy.host='192.0.2.1'")
    assert "policy.host 192.0.2.1 is no name of this machine" in said


@pytest.mark.parametrize(
    ("backend", "device", "message"),
    [
        ("fsdp:d2c4", "cuda", "backend 'fsdp:d2c4' is for 8 processes, processes is 4"),
        ("fsdp:d2c2", "cpu", "divided by flash attention, which a CPU lacks: leave out c"),
        ("fsdp:d2t2", "cuda", "layers divided over processes (t) gave other log-probs than one process: leave out t"),
        ("fsdp:d2p2", "cuda", "String should match pattern"),
    ],
)
def test_a_division_of_the_processes_that_cannot_be(backend: str, device: str, message: str) -> None:
    policy = {"kind": "areal", "processes": 4, "backend": backend, "device": device}
    with pytest.raises(ValueError, match=re.escape(message)):
        Config.model_validate({"policy": policy})


def test_processes_that_divide_rows_need_flash_attention(cache: Path) -> None:
    make_environment(cache, "areal", "cuda")
    make_environment(cache, "vllm", "cuda")
    chosen, _ = configured("areal", None, "policy.device='cuda'", "policy.processes=2", "policy.backend='fsdp:c2'")
    with pytest.raises(ValueError, match=r"divides rows \(c\), and .* lacks flash-attn: run .* pip install flash-attn"):
        _require_flash_attention(chosen)
    (cache / "engines" / "areal" / "lib" / "python3.11" / "site-packages" / "flash_attn").mkdir()
    _require_flash_attention(chosen)


def test_folders_of_runs_on_other_machines_are_left_alone(cache: Path, tmp_path: Path) -> None:
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    here, other = (tmp_path / "weights" / f"run-{name}-{dead}-x" for name in (socket.gethostname(), "node2"))
    for folder in (here, other):
        folder.mkdir(parents=True)
    chosen, _ = configured("areal", None, f"policy.weights_dir='{tmp_path / 'weights'}'")
    own = _work_folder(chosen)
    assert own.is_dir()
    assert other.is_dir(), "its driver may be alive there"
    assert not here.exists()
