"""What both trainers share: the choice of attention, and saving and exporting what FSDP2 has sharded."""

import importlib.util
import os
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)


def flash_attention(device: str) -> bool:
    """Return whether rows are packed for flash attention, which `arise engines install` cannot build; else torch's."""
    return device != "cpu" and importlib.util.find_spec("flash_attn") is not None


def export_model(model: Any, folder: str, dtype: torch.dtype) -> None:
    """Gather the weights on the first process, add adapters in, and write them as a Hugging Face folder."""
    state = _gathered(model, ignore_frozen_params=False)
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        plain = model.get_base_model() if hasattr(model, "peft_config") else model
        state = _merged(model, state) if plain is not model else state
        plain.save_pretrained(folder, state_dict=_as_type(state, dtype))
    dist.barrier()


def export_adapter(model: Any, folder: str, dtype: torch.dtype) -> None:
    """Gather the adapters on the first process and write them as peft does; the base model is not gathered."""
    state = _gathered(model, ignore_frozen_params=True)
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        model.save_pretrained(folder, state_dict=_as_type(state, dtype))
    dist.barrier()


def _gathered(model: Any, *, ignore_frozen_params: bool) -> dict[str, Any]:
    options = StateDictOptions(full_state_dict=True, cpu_offload=True, ignore_frozen_params=ignore_frozen_params)
    found: dict[str, Any] = get_model_state_dict(model, options=options)
    return found


def _merged(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the weights with every adapter added to its layer, under the names of the plain model."""
    config = model.peft_config["default"]
    whole = {}
    for name, weight in state.items():
        if ".lora_" in name:
            continue
        above = name.removesuffix(".base_layer.weight")
        if above != name:
            down, up = (state[f"{above}.lora_{side}.default.weight"].float() for side in "AB")
            weight = weight.float() + up @ down * (config.lora_alpha / config.r)
        whole[name.removeprefix("base_model.model.").replace(".base_layer.", ".")] = weight
    return whole


def _as_type(state: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    return {name: t.to(dtype) if t.is_floating_point() else t for name, t in state.items()}


def start_moments(model: Any, optimizer: Any) -> None:
    """Create the optimizer's moments before its first step.

    torch creates missing moments when it saves them, by a step without gradients. It counts that step, which would make
    the first real update a quarter smaller.
    """
    get_state_dict(model, optimizer)
    for state in optimizer.state.values():
        state["step"].zero_()


def save_sharded(model: Any, optimizer: Any, folder: str) -> None:
    """Write weights and optimizer, each process its part."""
    weights, moments = get_state_dict(model, optimizer)
    state_dict_saver.save({"model": weights, "optim": moments}, checkpoint_id=folder)


def load_sharded(model: Any, optimizer: Any, folder: str) -> None:
    """Read what `save_sharded` wrote, on any number of processes."""
    weights, moments = get_state_dict(model, optimizer)
    state: dict[str, Any] = {"model": weights, "optim": moments}
    state_dict_loader.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
