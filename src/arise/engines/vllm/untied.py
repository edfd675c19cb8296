"""Folders for vLLM on a CPU, which keeps the old output layer of a tied model when it takes new weights.

Given a separate output layer, equal to the input embeddings, vLLM loads both. The policy itself stays tied.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

from arise.engines.folders import draft_beside, swap_in

INPUT, OUTPUT = "embed_tokens.weight", "lm_head.weight"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX, BODY, HEAD = "model.safetensors.index.json", "model-body.safetensors", "model-head.safetensors"


def untied_copy(model: str, folder: Path) -> str:
    """Return a folder with the untied form of a model, written to `folder` where it is tied; weights are linked."""
    if not may_be_tied(_config(Path(model))):
        return model
    draft = draft_beside(folder)
    for file in Path(model).iterdir():
        if file.suffix == ".safetensors":
            (draft / file.name).symlink_to(file.resolve())
        elif file.is_file():
            shutil.copyfile(file, draft / file.name)
    untie(draft)
    swap_in(draft, folder)
    return str(folder)


def untie(folder: Path) -> None:
    """Give a tied model folder a separate output layer, in its own weight file."""
    facts = _config(folder)
    if not may_be_tied(facts):
        return
    places = _places(folder)
    if not any(name.endswith(OUTPUT) for name in places):
        name = next((name for name in places if name.endswith(INPUT)), None)
        if name is None:
            raise ValueError(f"{folder} has tied embeddings but no weight named {INPUT}: use an untied model")
        with safe_open(str(folder / places[name]), framework="pt") as weights:
            save_file({OUTPUT: weights.get_tensor(name)}, folder / HEAD, metadata={"format": "pt"})
        if not (folder / INDEX).is_file():  # a file of this name would be read in place of the index
            (folder / WEIGHTS).rename(folder / BODY)
            places = dict.fromkeys(places, BODY)
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": {**places, OUTPUT: HEAD}}))
    facts["tie_word_embeddings"] = False
    if "text_config" in facts:
        facts["text_config"]["tie_word_embeddings"] = False
    (folder / CONFIG).write_text(json.dumps(facts, indent=1))


def may_be_tied(facts: dict[str, Any]) -> bool:
    """Return whether output and input embeddings may be one matrix: for many architectures that is the default."""
    inner = facts.get("text_config", {})
    return bool(inner.get("tie_word_embeddings", facts.get("tie_word_embeddings", True)))


def _config(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / CONFIG).read_text())
    return found


def _places(folder: Path) -> dict[str, str]:
    """Return the file of every weight."""
    if (folder / INDEX).is_file():
        return dict(json.loads((folder / INDEX).read_text())["weight_map"])
    with safe_open(str(folder / WEIGHTS), framework="pt") as weights:
        return dict.fromkeys(weights.keys(), WEIGHTS)
