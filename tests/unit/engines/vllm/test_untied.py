"""Folders for vLLM on a CPU: a tied model gets an output layer, an untied one is left as it is."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from arise.engines.local.models import save
from arise.engines.local.small_model import small_model
from arise.engines.vllm.untied import untie, untied_copy


def tied_model(folder: Path) -> torch.nn.Module:
    loaded = small_model(["count the words"], vocabulary=300, hidden=32, layers=1, heads=1, kv_heads=1)
    save(loaded.model, loaded.tokenizer, folder)
    found: torch.nn.Module = loaded.model
    return found


def test_the_copy_has_an_output_layer_and_the_same_logits(tmp_path: Path) -> None:
    model, ids = tied_model(tmp_path / "tied"), torch.arange(9)[None]
    before = {file.name: file.read_bytes() for file in (tmp_path / "tied").iterdir()}
    copy = untied_copy(str(tmp_path / "tied"), tmp_path / "copy")
    found = AutoModelForCausalLM.from_pretrained(copy).eval()
    assert found.lm_head.weight is not found.model.embed_tokens.weight
    with torch.no_grad():
        assert torch.equal(found(ids).logits, model.eval()(ids).logits)
    assert {file.name: file.read_bytes() for file in (tmp_path / "tied").iterdir()} == before
    assert untied_copy(copy, tmp_path / "again") == copy


def test_several_weight_files_keep_their_index(tmp_path: Path) -> None:
    save_file({"model.embed_tokens.weight": torch.ones(3, 2)}, tmp_path / "a.safetensors")
    save_file({"model.norm.weight": torch.ones(2)}, tmp_path / "b.safetensors")
    places = {"model.embed_tokens.weight": "a.safetensors", "model.norm.weight": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {"tie_word_embeddings": True}}))
    untie(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    assert index == {**places, "lm_head.weight": "model-head.safetensors"}
    assert json.loads((tmp_path / "config.json").read_text())["text_config"] == {"tie_word_embeddings": False}


def test_embeddings_of_another_name_are_refused(tmp_path: Path) -> None:
    save_file({"wte": torch.ones(3, 2)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="use an untied model"):
        untie(tmp_path)
