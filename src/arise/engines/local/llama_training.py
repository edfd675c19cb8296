"""The training forward of Llama-type models: their own modules and parameters, without unneeded work.

Norms and rotations have closed-form gradients, and only the requested tokens are computed after the last attention.
Must agree with the transformers forward and its gradients.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from arise.engines.local.packing import Block, Packed


def logits_at(model: Any, packed: Packed) -> Tensor:
    """Return the logits at the picked tokens."""
    body = model.model
    x = body.embed_tokens(packed.ids_N)
    cos, sin = body.rotary_emb(x, packed.position_N[None])
    half = cos.shape[-1] // 2
    rotation = cos[0, :, None, :half], sin[0, :, None, :half]
    for number, layer in enumerate(body.layers, 1):
        wanted = packed.picked_M if number == len(body.layers) else None
        if body.gradient_checkpointing:
            x = checkpoint(_layer, layer, x, *rotation, packed, wanted, use_reentrant=False)
        else:
            x = _layer(layer, x, *rotation, packed, wanted)
    logits: Tensor = model.lm_head(_norm(body.norm, x))
    return logits


def _layer(layer: Any, x: Tensor, cos: Tensor, sin: Tensor, packed: Packed, wanted: Tensor | None) -> Tensor:
    attention = layer.self_attn
    heads = (len(x), -1, attention.head_dim)
    normed = _norm(layer.input_layernorm, x)
    q, k, v = (proj(normed).view(heads) for proj in (attention.q_proj, attention.k_proj, attention.v_proj))
    if hasattr(attention, "q_norm"):
        q, k = _norm(attention.q_norm, q), _norm(attention.k_norm, k)
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    # After the last layer only picked tokens are wanted, and none of them is in a shared prompt.
    blocks = packed.blocks if wanted is None else packed.blocks[: len(packed.blocks) - packed.shared]
    parts = [_attend(q, k, v, block) for block in blocks]
    attended = parts[0] if len(parts) == 1 else torch.cat(parts)
    taken = packed.place_N if wanted is None else packed.place_N[wanted]
    x = x if wanted is None else embedding(wanted, x)
    x = x + attention.o_proj(embedding(taken, attended))
    mixed: Tensor = x + layer.mlp(_norm(layer.post_attention_layernorm, x))
    return mixed


def _attend(q: Tensor, k: Tensor, v: Tensor, block: Block) -> Tensor:
    """Return the attention of a block's queries, row after row."""
    rows = _spread(q, block.query_BQ), _spread(k, block.key_BK), _spread(v, block.key_BK)
    mask = block.mask_QK
    attended = scaled_dot_product_attention(*rows, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
    return attended.transpose(1, 2).flatten(2).flatten(0, 1)


def _spread(x: Tensor, spread_BT: Tensor) -> Tensor:
    """Spread flat tokens to rows, heads first; an embedding lookup has the fastest gradient."""
    rows: Tensor = embedding(spread_BT, x.flatten(1)).unflatten(-1, x.shape[1:])
    return rows.transpose(1, 2)


def _norm(module: Any, x: Tensor) -> Tensor:
    normed: Tensor = _RmsNorm.apply(x, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]
    return normed


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rotated: Tensor = _Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return rotated


class _RmsNorm(torch.autograd.Function):
    """y = w x / rms(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + eps).rsqrt_()
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        return unit * weight

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        unit, scale, weight = ctx.saved_tensors
        product = gradient * unit
        along = (product @ weight).unsqueeze(-1).div_(-unit.shape[-1])
        dx = (gradient * weight).addcmul_(unit, along).mul_(scale)
        return dx, product.flatten(0, -2).sum(0), None


class _Rotate(torch.autograd.Function):
    """Rotary position embedding; its gradient is the inverse rotation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotated(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _rotated(gradient, cos, -sin), None, None


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    turned = torch.empty_like(x)
    (first, second), (low, high) = x.chunk(2, dim=-1), turned.chunk(2, dim=-1)
    torch.mul(first, cos, out=low).addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=high).addcmul_(first, sin)
    return turned
