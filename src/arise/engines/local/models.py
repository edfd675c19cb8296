"""Load models by name: pulled into the cache, a local folder, or a hub name; one clear error if it fails."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arise.engines.folders import draft_beside, swap_in
from arise.engines.local.pretrained import PULLABLE, cached_folder, parameters_in
from arise.engines.local.weights import LoraSpec, merged_weights, plain_model

BYTES_PER_PARAMETER = 4
COPIES = {"lora": 5, "full": 6}
"""fp32 copies of the weights in memory at most, measured while new weights are published: the trained ones, the sampled
ones, those that replace them and, with adapters, their sum; a full update keeps a gradient and two moments instead."""


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model with its tokenizer — `LocalEngine(m.model, m.tokenizer, lora=m.lora)` uses its default adapters."""

    name: str
    model: Any
    tokenizer: Any
    lora: LoraSpec | None = None


def load(name_or_path: str, *, lora: bool | None = None) -> LoadedModel:
    """Load a chat model; `lora` None chooses adapters for the models that `pull` knows, full training elsewhere."""
    folder = model_folder(name_or_path)
    with_lora = name_or_path in PULLABLE if lora is None else lora
    if folder is not None:
        _require_memory(name_or_path, parameters_in(folder), "lora" if with_lora else "full")
        _without_bars()
    model, tokenizer = _from_transformers(name_or_path, str(folder or name_or_path))
    if not tokenizer.chat_template:
        raise ValueError(
            f"{name_or_path}: the tokenizer has no chat template: use an instruction-tuned model, "
            "or put a chat_template.jinja into its folder"
        )
    return LoadedModel(name_or_path, model, tokenizer, LoraSpec() if with_lora else None)


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write a folder that plain transformers loads: the trained weights, merged, configuration, tokenizer."""
    _without_bars()
    draft = draft_beside(folder)
    plain_model(model).save_pretrained(draft, state_dict=merged_weights(model))
    tokenizer.save_pretrained(draft)
    swap_in(draft, folder)


def save_adapter(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write the adapter alone, as peft does; the base model is named in its configuration."""
    _without_bars()
    draft = draft_beside(folder)
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    swap_in(draft, folder)


def _without_bars() -> None:
    """Disable progress bars: they are noise in logs and break the live screen."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def model_folder(name_or_path: str) -> Path | None:
    """Return the local folder of a model; None for a hub name."""
    if name_or_path in PULLABLE:
        folder = cached_folder(name_or_path)
        if not (folder / "config.json").is_file():
            raise ValueError(f"{name_or_path} was not pulled yet: run `arise models pull {name_or_path}`")
        return folder
    folder = Path(name_or_path).expanduser()
    if not folder.exists() and name_or_path.count("/") == 1 and not name_or_path.startswith((".", "/", "~")):
        return None
    if not folder.is_dir():
        known = ", ".join(PULLABLE)
        raise ValueError(
            f"{name_or_path}: no such model folder; give a folder, a hub name (owner/model), or one of: {known}"
        )
    if not (folder / "config.json").is_file():
        raise ValueError(f"{name_or_path} is not a model folder: it has no config.json")
    return folder


def tokenizer_and_config(source: str) -> tuple[Any, Any]:
    """Return the tokenizer and the configuration of a model's text part, without loading its weights."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(source), AutoConfig.from_pretrained(source).get_text_config()
    except Exception as error:  # transformers raises a dozen kinds; a user needs one sentence
        raise ValueError(f"{source} cannot be loaded as a causal language model: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _from_transformers(name: str, source: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(source)
    except Exception as error:  # transformers raises a dozen kinds; a user needs one sentence
        raise ValueError(f"{name} cannot be loaded as a causal language model: {_first_line(error)}") from error
    # transformers only warns about missing weights and initialises them randomly.
    model, report = loaded
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(f"{name} lacks {len(missing)} of the weights its config.json asks for, first {missing[0]}")
    return model.eval(), tokenizer


def _require_memory(name: str, parameters: int, mode: str) -> None:
    import psutil

    needed = parameters * BYTES_PER_PARAMETER * COPIES[mode]
    free = psutil.virtual_memory().available
    if needed > free:
        hint = "choose a smaller model" if mode == "lora" else "train adapters (lora) or choose a smaller model"
        raise ValueError(
            f"{name} needs about {needed / 2**30:.1f} GiB to train ({mode}), {free / 2**30:.1f} GiB are free: {hint}"
        )
