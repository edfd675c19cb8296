"""The fast decoder for Llama-type models (Llama, SmolLM2, Mistral, Qwen2, Qwen3): weights fused, keys and values in one
preallocated tensor of rows, results independent of the other rows. Must agree with the transformers forward to 1e-4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, rms_norm, scaled_dot_product_attention, silu

from arise.engines.invariance import ROW_BLOCK, LinearFactory, RowInvariantLinear

SUPPORTED = ("llama", "mistral", "qwen2", "qwen3")
KEY_BLOCK, NEAR, FAR_BLOCK, MAX_QUERIES = 64, 384, 512, 512
"""Measured: attention is bit-equal over any masked keys in blocks of 64 up to 384 keys, in blocks of 512 beyond (a BLAS
sums more than 384 in parts), and over other queries in blocks of 4, for heads of up to 32 of 2, to 512."""


def supports(config: Any) -> bool:
    """Whether the fast decoder computes exactly what this model's own forward does."""
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in SUPPORTED
        and config.hidden_act == "silu"
        and not getattr(config, "mlp_bias", False)
        and not getattr(config, "sliding_window", None)
        and not (config.model_type == "llama" and getattr(config, "attention_bias", False))
        and rope.get("rope_type", "default") in ("default", "linear", "llama3", "yarn")
        and rope.get("partial_rotary_factor", 1.0) == 1.0
    )


@dataclass(frozen=True)
class _Layer:
    norm: Tensor
    qkv: RowInvariantLinear
    qk_norm: Tensor | None
    out: RowInvariantLinear
    mlp_norm: Tensor
    gate_up: RowInvariantLinear
    down: RowInvariantLinear


@dataclass(frozen=True)
class _Placement:
    """Where the tokens of one forward stand: their rows, cache slots and rotations, and which keys each may see."""

    rows: slice
    slot_NH: Tensor
    rotation_N: Tensor
    near: Tensor
    masks: tuple[Tensor, ...]
    """For the near tokens, then for the others, where there are any: which of a number of keys each may see."""


class LlamaDecoder:
    """Forwards tokens of rows first, first + 1, ... and keeps their keys and values; a row is one conversation."""

    exact_prefix_only = False

    def __init__(self, config: Any, rotary: Any, context_length: int, dtype: torch.dtype, device: torch.device) -> None:
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._query_block = 2 if self._head <= 32 else 4
        self.prefill_chunk = MAX_QUERIES * self._kv_heads // self._heads
        self._eps = config.rms_norm_eps
        self._tied = config.tie_word_embeddings
        self._dtype, self._device = dtype, device
        self._linears = LinearFactory()
        positions = torch.arange(context_length + MAX_QUERIES, dtype=torch.float32)
        angles = torch.outer(positions, rotary.inv_freq.float().cpu())
        self._rotation = torch.polar(torch.full_like(angles, rotary.attention_scaling), angles).to(device)
        # Keys, then values, of one head lie side by side: attention reads them in one sweep.
        shape = (config.num_hidden_layers, ROW_BLOCK, 2 * self._kv_heads, KEY_BLOCK, self._head)
        self._cache = torch.zeros(shape, dtype=dtype, device=device)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take a snapshot of transformers-named weights; rotary pairs become neighbours: one product rotates."""
        w = {name: tensor.detach().to(self._device, self._dtype) for name, tensor in weights.items()}
        self._embedding = w["model.embed_tokens.weight"].clone()
        self._norm = w["model.norm.weight"].clone()
        self._lm_head = self._linears.make(self._embedding if self._tied else w["lm_head.weight"].clone())
        self._layers = [self._layer(w, f"model.layers.{i}.") for i in range(len(self._cache))]

    def _layer(self, w: Mapping[str, Tensor], prefix: str) -> _Layer:
        attention, mlp = prefix + "self_attn.", prefix + "mlp."
        projections = [attention + name for name in ("q_proj", "k_proj", "v_proj")]

        def fused(kind: str) -> Tensor:
            q, k, v = (w[f"{name}.{kind}"] for name in projections)
            return torch.cat([self._paired(q), self._paired(k), v])

        qk_norm = None
        if attention + "q_norm.weight" in w:
            q_norm, k_norm = (self._paired(w[f"{attention}{name}_norm.weight"]) for name in "qk")
            qk_norm = torch.stack([q_norm] * self._heads + [k_norm] * self._kv_heads)

        return _Layer(
            norm=w[prefix + "input_layernorm.weight"].clone(),
            qkv=self._linears.make(fused("weight"), fused("bias") if projections[0] + ".bias" in w else None),
            qk_norm=qk_norm,
            out=self._linears.make(w[attention + "o_proj.weight"].clone()),
            mlp_norm=w[prefix + "post_attention_layernorm.weight"].clone(),
            gate_up=self._linears.make(torch.cat([w[mlp + "gate_proj.weight"], w[mlp + "up_proj.weight"]])),
            down=self._linears.make(w[mlp + "down_proj.weight"].clone()),
        )

    def _paired(self, rows: Tensor) -> Tensor:
        """Reorder each head from (first halves, second halves) to (pair, pair, ...): scores do not change."""
        heads = rows.view(-1, 2, self._head // 2, *rows.shape[1:])
        return heads.transpose(1, 2).reshape(rows.shape)

    def forward(self, first: int, ids_RT: Tensor, start_R: Tensor, last_R: Tensor) -> Tensor:
        """Append T tokens at position `start_R` of each row; gives the hidden state of each row's token `last_R`."""
        rows, length = ids_RT.shape
        batch = self._place(first, rows, length, start_R)
        x = self._embedding[pad(ids_RT.flatten(), (0, -ids_RT.numel() % ROW_BLOCK))]
        for layer, cache in zip(self._layers, self._cache, strict=True):
            x = x + layer.out(self._attend(layer, cache, rms_norm(x, x.shape[-1:], layer.norm, self._eps), batch))
            gate, up = layer.gate_up(rms_norm(x, x.shape[-1:], layer.mlp_norm, self._eps)).chunk(2, dim=-1)
            x = x + layer.down(silu(gate).mul_(up))
        return x[torch.arange(rows, device=self._device) * length + last_R]

    def _place(self, first: int, rows: int, length: int, start_R: Tensor) -> _Placement:
        position_RT = start_R[:, None] + torch.arange(length, device=self._device)
        nearest, furthest = int(start_R.min()), int(start_R.max()) + length - 1
        reaches = [min(_rounded(furthest + 1, KEY_BLOCK), NEAR)] if nearest < NEAR else []
        if furthest >= NEAR:
            reaches.append(_rounded(furthest + 1, FAR_BLOCK))
        self._grow(first + rows, reaches[-1])
        row_R = first + torch.arange(rows, device=self._device)
        _, _, heads, kept, _ = self._cache.shape
        head_RH = (row_R[:, None] * heads + torch.arange(heads, device=self._device)) * kept
        query_RQ = position_RT
        if length > 1:
            query_RQ = query_RQ.repeat_interleave(self._heads // self._kv_heads, dim=1)
            query_RQ = pad(query_RQ, (0, -query_RQ.shape[1] % self._query_block))
        return _Placement(
            rows=slice(first, first + rows),
            slot_NH=(position_RT[:, :, None] + head_RH[:, None]).flatten(0, 1),
            rotation_N=self._rotation[position_RT.flatten()].unsqueeze(1),
            near=(query_RQ < NEAR)[:, None, :, None],
            masks=tuple(self._mask(query_RQ, reach) for reach in reaches),
        )

    def _mask(self, query_RQ: Tensor, reach: int) -> Tensor:
        hidden = query_RQ[:, :, None] < torch.arange(reach, device=self._device)
        mask = torch.zeros(hidden.shape, dtype=self._dtype, device=self._device).masked_fill_(hidden, -torch.inf)
        return mask.unsqueeze(1)

    def _attend(self, layer: _Layer, cache: Tensor, x: Tensor, batch: _Placement) -> Tensor:
        kv_heads, head, group, tokens = self._kv_heads, self._head, self._heads // self._kv_heads, len(batch.slot_NH)
        q_width, kv_width = self._heads * head, kv_heads * head
        qk, v = layer.qkv(x)[:tokens].split((q_width + kv_width, kv_width), dim=-1)
        qk = qk.unflatten(-1, (-1, head))
        if layer.qk_norm is not None:
            qk = rms_norm(qk, (head,), None, self._eps) * layer.qk_norm
        pairs = torch.view_as_complex(qk.float().unflatten(-1, (-1, 2)))
        qk = torch.view_as_real(pairs * batch.rotation_N).flatten(1).to(self._dtype)
        q, k = qk.split((q_width, kv_width), dim=-1)
        cache.view(-1, head).index_copy_(0, batch.slot_NH.flatten(), torch.cat([k, v], dim=-1).view(-1, head))

        rows = len(batch.near)
        q = q.reshape(rows, -1, kv_heads, group, head).transpose(1, 2).reshape(rows, kv_heads, -1, head)
        queries = q.shape[2]
        q = pad(q, (0, 0, 0, -queries % self._query_block))
        found = [self._attention(q, cache[batch.rows, :, : mask.shape[-1]], mask) for mask in batch.masks]
        attended = (found[0] if len(found) == 1 else torch.where(batch.near, found[0], found[1]))[:, :, :queries]
        attended = attended.reshape(rows, kv_heads, -1, group, head).transpose(1, 2).reshape(tokens, -1)
        return pad(attended, (0, 0, 0, len(x) - tokens)) if len(x) > tokens else attended

    def _attention(self, q: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
        keys, values = kept.split(self._kv_heads, dim=1)
        return scaled_dot_product_attention(q, keys, values, attn_mask=mask)

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Next-token logits in float32 of hidden states that `forward` gave."""
        rows = len(hidden_RD)
        padded = pad(hidden_RD, (0, 0, 0, -rows % ROW_BLOCK))
        return self._lm_head(rms_norm(padded, padded.shape[-1:], self._norm, self._eps))[:rows].float()

    def restore_row(self, row: int, saved: Tensor, length: int) -> None:
        """Fill a row with the first `length` positions of a saved prefix."""
        self._grow(row + 1, length)
        self._cache[:, row, :, :length] = saved[:, :, :length]

    def save_row(self, row: int, length: int) -> Tensor:
        """A copy of a row's keys and values, for a later turn or another row."""
        return self._cache[:, row, :, :length].clone()

    def move_row(self, source: int, target: int, length: int) -> None:
        """Close a gap that a finished row left."""
        self._cache[:, target, :, :length] = self._cache[:, source, :, :length]

    def saved_bytes(self, saved: Tensor) -> int:
        """Memory of a saved prefix."""
        return saved.nbytes

    def _grow(self, rows: int, length: int) -> None:
        layers, old_rows, heads, old_length, head = self._cache.shape
        if rows <= old_rows and length <= old_length:
            return
        # A torn doubling in both directions at once would square the memory: each direction grows only when it must.
        new_rows = old_rows if rows <= old_rows else _rounded(rows, ROW_BLOCK)
        new_length = old_length if length <= old_length else _rounded(length + length // 4, KEY_BLOCK)
        grown = torch.zeros(layers, new_rows, heads, new_length, head, dtype=self._dtype, device=self._device)
        grown[:, :old_rows, :, :old_length] = self._cache
        self._cache = grown


def _rounded(count: int, block: int) -> int:
    return -(-count // block) * block
