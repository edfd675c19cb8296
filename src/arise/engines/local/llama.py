"""The fast decoder for Llama-type models (Llama, SmolLM2, Mistral, Qwen2, Qwen3).

Fused weights, shared prefixes read once, batch-invariant results. Must agree with transformers to 1e-4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad, rms_norm, silu

from arise.engines.local.attention import (
    MAX_QUERIES,
    VisibleKeys,
    attend,
    invariance_limits,
    merged,
    padded_queries,
    visible_keys,
)
from arise.engines.local.invariance import ROW_BLOCK, LinearFactory, RowInvariantLinear, by_rows
from arise.engines.local.key_values import KeyValues, SharedPrefixes, Sharing
from arise.engines.local.sampling import choose
from arise.types import SamplingParams

SUPPORTED = ("llama", "mistral", "qwen2", "qwen3")


def supports(config: Any) -> bool:
    """Return whether the fast decoder supports this model exactly."""
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in SUPPORTED
        and config.hidden_act == "silu"
        and not getattr(config, "mlp_bias", False)
        and not getattr(config, "sliding_window", None)
        and not (config.model_type in ("llama", "qwen3") and getattr(config, "attention_bias", False))
        and rope.get("rope_type", "default") in ("default", "linear", "llama3", "yarn")
        and rope.get("partial_rotary_factor", 1.0) == 1.0
    )


def _gated(gate_up: Tensor) -> Tensor:
    gate, up = gate_up.chunk(2, dim=-1)
    return silu(gate).mul_(up)


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
class Saved:
    """The keys and values of a row, after its shared prefix."""

    own: Tensor
    shared: Tensor | None


@dataclass(frozen=True)
class _Placement:
    """Layout of one forward: rows, cache slots, rotations and masks."""

    rows: slice
    slot_NH: Tensor
    rotation_N: Tensor
    visible_keys: VisibleKeys
    sharing: Sharing | None


class LlamaDecoder:
    """Forwards tokens of rows first, first + 1, ... and stores keys and values; a row is one conversation."""

    cuts_prefixes = True

    def __init__(self, config: Any, rotary: Any, context_length: int, dtype: torch.dtype, device: torch.device) -> None:
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self.prefill_chunk = MAX_QUERIES * self._kv_heads // self._heads
        self._eps = config.rms_norm_eps
        self._tied = config.tie_word_embeddings
        self._dtype, self._device = dtype, device
        self._linears = LinearFactory()
        positions = torch.arange(context_length + MAX_QUERIES, dtype=torch.float32)
        angles = torch.outer(positions, rotary.inv_freq.float().cpu())
        self._rotation = torch.polar(torch.full_like(angles, rotary.attention_scaling), angles).to(device)
        shape = (config.num_hidden_layers, self._kv_heads, self._head)
        self._rows = KeyValues(*shape, dtype, device)
        self._shared = SharedPrefixes(KeyValues(*shape, dtype, device))

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take a snapshot of transformers-named weights; rotary pairs become adjacent, so one product rotates."""
        self._shared.clear()
        self._rows.empty()
        self._query_block, self._near = invariance_limits(
            self._head, self._dtype, self._device, torch.get_num_threads()
        )
        w = {name: tensor.detach().to(self._device, self._dtype) for name, tensor in weights.items()}
        self._embedding = w["model.embed_tokens.weight"].clone()
        self._norm = w["model.norm.weight"].clone()
        self._lm_head = self._linears.make(self._embedding if self._tied else w["lm_head.weight"].clone())
        self._layers = [self._layer(w, f"model.layers.{i}.") for i in range(len(self._rows.tensor))]

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
        """Append T tokens at position `start_R` of each row; return the hidden state of each row's token `last_R`."""
        rows, length = ids_RT.shape
        batch = self._place(first, rows, length, start_R)
        x = self._embedding[pad(ids_RT.flatten(), (0, -ids_RT.numel() % ROW_BLOCK))]
        for layer, own, shared in zip(self._layers, self._rows.tensor, self._shared.tensor, strict=True):
            normal = rms_norm(x, x.shape[-1:], layer.norm, self._eps)
            x = x + layer.out(self._attend(layer, own, shared, normal, batch))
            x = x + layer.down(by_rows(_gated, layer.gate_up(rms_norm(x, x.shape[-1:], layer.mlp_norm, self._eps))))
        return x[torch.arange(rows, device=self._device) * length + last_R]

    def _place(self, first: int, rows: int, length: int, start_R: Tensor) -> _Placement:
        position_RT = start_R[:, None] + torch.arange(length, device=self._device)
        shared_R = torch.tensor([self._shared.length(first + row) for row in range(rows)], device=self._device)
        own_RT = position_RT - shared_R[:, None]
        query_RQ = own_RT
        if length > 1:
            query_RQ = query_RQ.repeat_interleave(self._heads // self._kv_heads, dim=1)
            query_RQ = pad(query_RQ, (0, -query_RQ.shape[1] % self._query_block))
        seen = visible_keys(query_RQ, self._dtype, self._near)
        self._rows.grow(first + rows, seen.keys)
        _, _, heads, kept, _ = self._rows.tensor.shape
        row_R = first + torch.arange(rows, device=self._device)
        head_RH = (row_R[:, None] * heads + torch.arange(heads, device=self._device)) * kept
        return _Placement(
            rows=slice(first, first + rows),
            slot_NH=(own_RT[:, :, None] + head_RH[:, None]).flatten(0, 1),
            rotation_N=self._rotation[position_RT.flatten()].unsqueeze(1),
            visible_keys=seen,
            sharing=self._shared.sharing(first, rows, self._near),
        )

    def _attend(self, layer: _Layer, own: Tensor, shared: Tensor, x: Tensor, batch: _Placement) -> Tensor:
        kv_heads, head, group, tokens = self._kv_heads, self._head, self._heads // self._kv_heads, len(batch.slot_NH)
        q_width, kv_width = self._heads * head, kv_heads * head
        qk, v = layer.qkv(x)[:tokens].split((q_width + kv_width, kv_width), dim=-1)
        qk = qk.unflatten(-1, (-1, head))
        if layer.qk_norm is not None:
            qk = rms_norm(qk, (head,), None, self._eps) * layer.qk_norm
        pairs = torch.view_as_complex(qk.float().unflatten(-1, (-1, 2)))
        qk = torch.view_as_real(by_rows(torch.mul, pairs, batch.rotation_N)).flatten(1).to(self._dtype)
        q, k = qk.split((q_width, kv_width), dim=-1)
        own.view(-1, head).index_copy_(0, batch.slot_NH.flatten(), torch.cat([k, v], dim=-1).view(-1, head))

        rows = batch.rows.stop - batch.rows.start
        q = q.reshape(rows, -1, kv_heads, group, head).transpose(1, 2).reshape(rows, kv_heads, -1, head)
        attended, total = attend(padded_queries(q, self._query_block), own[batch.rows], batch.visible_keys)
        attended, total = attended[:, :, : q.shape[2]], total[:, :, : q.shape[2]]
        if batch.sharing is not None:
            both = merged((attended, total), self._attend_shared(q, shared, batch.sharing))
            alone = batch.sharing.alone_R
            attended = both if alone is None else torch.where(alone[:, None, None, None], attended, both)
        attended = attended.reshape(rows, kv_heads, -1, group, head).transpose(1, 2).reshape(tokens, -1)
        return pad(attended, (0, 0, 0, len(x) - tokens)) if len(x) > tokens else attended

    def _attend_shared(self, q_RHQD: Tensor, shared: Tensor, sharing: Sharing) -> tuple[Tensor, Tensor]:
        """Attend with the queries of all rows that share a prefix, batched over its keys."""
        prefixes, most = sharing.member_GM.shape
        _, kv_heads, queries, head = q_RHQD.shape
        q = q_RHQD[sharing.member_GM.flatten()].view(prefixes, most, kv_heads, queries, head)
        q = padded_queries(q.transpose(1, 2).reshape(prefixes, kv_heads, -1, head), self._query_block)
        parts = [attend(part, shared, sharing.visible_keys) for part in q.split(MAX_QUERIES, dim=2)]
        attended, total = (
            parts[0] if len(parts) == 1 else (torch.cat(found, dim=2) for found in zip(*parts, strict=True))
        )
        seats = (prefixes, kv_heads, most, queries)
        attended = attended[:, :, : most * queries].reshape(*seats, head).transpose(1, 2).flatten(0, 1)
        total = total[:, :, : most * queries].reshape(seats).transpose(1, 2).flatten(0, 1)
        return attended[sharing.home_R], total[sharing.home_R]

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Next-token logits in float32 for hidden states of `forward`."""
        rows = len(hidden_RD)
        padded = pad(hidden_RD, (0, 0, 0, -rows % ROW_BLOCK))
        return self._lm_head(rms_norm(padded, padded.shape[-1:], self._norm, self._eps))[:rows].float()

    def choose(
        self, hidden_RD: Tensor, uniform_R: NDArray[np.float64], params: Sequence[SamplingParams]
    ) -> tuple[list[int], list[float]]:
        """Sample one token per row."""
        return choose(self.logits(hidden_RD), uniform_R, params)

    def start_row(self, row: int, known: Saved | None, length: int) -> None:
        """Start a row from the first `length` tokens of an unshared row, or empty; it shares nothing."""
        self._shared.attach(row, None)
        if known is not None:
            self._rows.write(row, known.own, length)

    def share_row(self, row: int, prefix: Saved) -> None:
        """Start a row that shares a saved, unshared row as its prefix."""
        self._shared.attach(row, prefix.own)

    def restore_row(self, row: int, saved: Saved) -> None:
        """Continue a saved row."""
        self._shared.attach(row, saved.shared)
        self._rows.write(row, saved.own, saved.own.shape[2])

    def save_row(self, row: int, length: int) -> Saved:
        """Return a copy of a row's keys and values, for a later turn or for sharing."""
        shared = self._shared.of(row)
        return Saved(self._rows.read(row, length - self._shared.length(row)), shared)

    def move_row(self, source: int, target: int, length: int) -> None:
        """Move a row into a free slot."""
        self._rows.move(source, target, length - self._shared.length(source))
        self._shared.move(source, target)

    def drop_row(self, row: int) -> None:
        """Drop a finished row."""
        self._shared.attach(row, None)

    def saved_bytes(self, saved: Saved) -> int:
        """Memory of a saved row; a shared prefix counts for each row that references it."""
        return saved.own.nbytes + (0 if saved.shared is None else saved.shared.nbytes)
