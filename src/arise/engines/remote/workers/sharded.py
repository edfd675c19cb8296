"""Saving and exporting a model that FSDP2 has sharded, with torch's own functions."""

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


def export_model(model: Any, folder: str, dtype: torch.dtype) -> None:
    """Gather the weights on the first process and write them as a Hugging Face folder."""
    state: dict[str, Any] = get_model_state_dict(
        model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        state = {name: t.to(dtype) if t.is_floating_point() else t for name, t in state.items()}
        model.save_pretrained(folder, state_dict=state)
    dist.barrier()


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
