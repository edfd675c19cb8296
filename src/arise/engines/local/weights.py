"""LoRA adapters, and the plain weights of a model with or without them."""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class LoraSpec:
    """Low-rank adapters on all linear layers — `LoraSpec(rank=16, alpha=32)`; the base weights stay fixed."""

    rank: int = 16
    alpha: int = 32


def with_adapters(model: Any, spec: LoraSpec, seed: int) -> Any:
    """Add fresh adapters; the output is unchanged until they are trained."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=spec.rank, lora_alpha=spec.alpha, target_modules="all-linear", task_type="CAUSAL_LM")
    with torch.random.fork_rng(), warnings.catch_warnings():
        # peft reads an attribute that transformers renamed; users cannot act on this warning
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        torch.manual_seed(seed)
        return get_peft_model(model, config)


def plain_model(model: Any) -> Any:
    """Return the transformers model without an adapter wrapper."""
    return model.get_base_model() if hasattr(model, "peft_config") else model


@torch.no_grad()
def merged_weights(model: Any) -> dict[str, Tensor]:
    """Weights under their transformers names, adapters added in; tensors may alias the model's own."""
    base = plain_model(model)
    weights = {
        name.replace(".base_layer.", "."): tensor.detach()
        for name, tensor in base.state_dict().items()
        if ".lora_" not in name
    }
    for name, module in base.named_modules():
        if hasattr(module, "get_delta_weight"):
            weights[f"{name}.weight"] = module.base_layer.weight.detach() + module.get_delta_weight("default")
    return weights


def trainable(model: Any) -> dict[str, torch.nn.Parameter]:
    """Return the trainable parameters by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
