"""The decoder for Llama-type models in native code: float32 on CPUs, the same bits in any batch.

Must agree with transformers to 1e-4. `llama.LlamaDecoder` does the same with torch alone.
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from arise.engines.local import sampling
from arise.engines.local.kernel import LAYER, Layer, Model, Shape
from arise.engines.local.pages import PAGE, Pages, SavedPages, pages_for
from arise.types import SamplingParams

PREFILL_CHUNK = 512
LANES = 16
Floats = NDArray[np.float32]


class NativeDecoder:
    """Implements `decoding.Decoder` on pages of keys and values; a row is one conversation."""

    cuts_prefixes = True
    prefill_chunk = PREFILL_CHUNK

    def __init__(self, library: ctypes.CDLL, config: Any, rotary: Any, context_length: int, threads: int) -> None:
        self._library, self._tied = library, config.tie_word_embeddings
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        head = getattr(config, "head_dim", None) or config.hidden_size // heads
        shape = Shape(
            config.hidden_size,
            config.num_hidden_layers,
            heads,
            kv_heads,
            head,
            config.intermediate_size,
            config.vocab_size,
            config.rms_norm_eps,
        )
        angles = torch.outer(torch.arange(context_length, dtype=torch.float32), rotary.inv_freq.float().cpu())
        self._cosines, self._sines = (
            (turned * rotary.attention_scaling).contiguous().numpy() for turned in (angles.cos(), angles.sin())
        )
        self._team = library.start_team(threads)
        self._layers = (Layer * shape.layers)()
        self._model = Model(shape=shape, layers=self._layers, team=self._team)
        self._model.cosines, self._model.sines = self._cosines.ctypes.data, self._sines.ctypes.data
        self._pages = Pages(shape.layers * kv_heads, -(-head // LANES) * LANES)
        self._width = pages_for(context_length) + 1
        self._table = np.zeros((8, self._width), np.int32)
        self._held = [0] * 8
        self._weights: dict[str, Floats] = {}

    def __del__(self) -> None:
        self._library.end_team(self._team)

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Take a snapshot of transformers-named weights, products packed for the kernel."""
        for row in range(len(self._held)):
            self.drop_row(row)
        self._pages.shrink()
        given = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in weights.items()}
        embedding, head = given["model.embed_tokens.weight"], given.get("lm_head.weight")
        self._model.embedding = self._plain("embedding", embedding)
        self._model.norm = self._plain("norm", given["model.norm.weight"])
        self._model.lm_head = self._packed("lm_head", embedding if self._tied or head is None else head)
        for index in range(self._model.shape.layers):
            self._load_layer(index, given)

    def _load_layer(self, index: int, given: Mapping[str, Tensor]) -> None:
        prefix = f"model.layers.{index}."
        attention, mlp = prefix + "self_attn.", prefix + "mlp."
        parts = [f"{attention}{name}_proj" for name in "qkv"]
        products = {
            "qkv": [given[f"{part}.weight"] for part in parts],
            "out": [given[attention + "o_proj.weight"]],
            "gate_up": [given[f"{mlp}{name}_proj.weight"] for name in ("gate", "up")],
            "down": [given[mlp + "down_proj.weight"]],
        }
        plain = {
            "norm": given[prefix + "input_layernorm.weight"],
            "mlp_norm": given[prefix + "post_attention_layernorm.weight"],
            "q_norm": given.get(attention + "q_norm.weight"),
            "k_norm": given.get(attention + "k_norm.weight"),
            "qkv_bias": torch.cat([given[f"{part}.bias"] for part in parts]) if f"{parts[0]}.bias" in given else None,
        }
        found = {name: self._packed(f"{index}.{name}", torch.cat(tensors)) for name, tensors in products.items()}
        found |= {name: self._plain(f"{index}.{name}", tensor) for name, tensor in plain.items() if tensor is not None}
        for name in LAYER:
            setattr(self._layers[index], name, found.get(name))

    def _plain(self, name: str, tensor: Tensor) -> int:
        """Copy a tensor and return its address."""
        self._weights[name] = tensor.contiguous().numpy().copy()
        return int(self._weights[name].ctypes.data)

    def _packed(self, name: str, tensor: Tensor) -> int:
        """Pack the weight of a product, into the memory of the previous version, and return its address."""
        weight = tensor.contiguous().numpy()
        rows, columns = weight.shape
        size = self._padded(rows) * columns
        if name not in self._weights:
            self._weights[name] = np.zeros(size, np.float32)
        into = self._weights[name]
        self._library.pack_weight(self._team, weight.ctypes.data, rows, columns, into.ctypes.data)
        return int(into.ctypes.data)

    def _padded(self, rows: int) -> int:
        panel: int = self._library.panel_width()
        return -(-rows // panel) * panel

    def forward(self, first: int, ids_RT: Tensor, start_R: Tensor, last_R: Tensor) -> Tensor:
        """Append tokens up to `last_R` at position `start_R` of each row; return the hidden state of the last."""
        counts, starts = (last_R + 1).numpy().astype(np.int32), start_R.numpy().astype(np.int32)
        rows = len(counts)
        for row, start, count in zip(range(first, first + rows), starts.tolist(), counts.tolist(), strict=True):
            self._make_room(row, start, start + count)
        ids = ids_RT.numpy()
        ids = ids[np.arange(ids.shape[1]) < counts[:, None]] if ids.shape[1] > 1 else ids
        ids = np.ascontiguousarray(ids, np.int64)
        hidden = np.empty((rows, self._model.shape.hidden), np.float32)
        table = self._table[first:]
        self._model.arenas = self._pages.addresses.ctypes.data
        failed = self._library.forward(
            self._model,
            rows,
            counts.ctypes.data,
            starts.ctypes.data,
            ids.ctypes.data,
            table.ctypes.data,
            self._width,
            hidden.ctypes.data,
        )
        if failed:
            raise MemoryError("the native decoder could not allocate its scratch memory")
        return torch.from_numpy(hidden)

    def _make_room(self, row: int, start: int, end: int) -> None:
        """Give a row its own pages for the positions from `start` to `end`."""
        self._reserve(row)
        held, table = self._held[row], self._table[row]
        at = start // PAGE
        if start % PAGE and at < held:
            table[at] = self._pages.own(int(table[at]))
        while held * PAGE < end:
            table[held] = self._pages.take()
            held += 1
        self._held[row] = held

    def _reserve(self, row: int) -> None:
        if row >= len(self._held):
            more = max(row + 1, 2 * len(self._held)) - len(self._held)
            self._table = np.concatenate([self._table, np.zeros((more, self._width), np.int32)])
            self._held += [0] * more

    def logits(self, hidden_RD: Tensor) -> Tensor:
        """Next-token logits in float32 for hidden states of `forward`."""
        return torch.from_numpy(self._logits(hidden_RD)[:, : self._model.shape.vocabulary])

    def _logits(self, hidden_RD: Tensor) -> Floats:
        hidden = np.ascontiguousarray(hidden_RD.numpy(), np.float32)
        stride = self._padded(self._model.shape.vocabulary)
        found = np.empty((len(hidden), stride), np.float32)
        if self._library.logits(self._model, hidden.ctypes.data, len(hidden), found.ctypes.data, stride):
            raise MemoryError("the native decoder could not allocate its scratch memory")
        return found

    def choose(
        self, hidden_RD: Tensor, uniform_R: NDArray[np.float64], params: Sequence[SamplingParams]
    ) -> tuple[list[int], list[float]]:
        """Sample one token per row; torch handles a row with top-p, regardless of the other rows."""
        logits = self._logits(hidden_RD)
        rows, size = len(logits), self._model.shape.vocabulary
        cut = [row for row, each in enumerate(params) if each.top_p < 1.0]
        cut_logits = torch.from_numpy(logits[cut, :size]) if cut else None
        temperatures = np.array([each.temperature for each in params], np.float32)
        uniforms = np.ascontiguousarray(uniform_R, np.float64)
        ids, logprobs = np.empty(rows, np.int64), np.empty(rows, np.float32)
        self._library.choose(
            self._team,
            logits.ctypes.data,
            rows,
            size,
            logits.shape[1],
            temperatures.ctypes.data,
            uniforms.ctypes.data,
            ids.ctypes.data,
            logprobs.ctypes.data,
        )
        chosen, found = ids.tolist(), logprobs.tolist()
        if cut_logits is not None:
            for row, token, logprob in zip(
                cut, *sampling.choose(cut_logits, uniforms[cut], [params[row] for row in cut]), strict=True
            ):
                chosen[row], found[row] = token, logprob
        return chosen, found

    def start_row(self, row: int, known: SavedPages | None, length: int) -> None:
        """Start a row from the first `length` tokens of a saved row, or empty."""
        self._reserve(row)
        self.drop_row(row)
        if known is not None and length:
            pages = known.pages[: pages_for(length)]
            self._pages.use(pages)
            self._table[row, : len(pages)] = pages
            self._held[row] = len(pages)

    def share_row(self, row: int, prefix: SavedPages) -> None:
        """Start a row that shares a saved row as its prefix."""
        self.start_row(row, prefix, prefix.length)

    def restore_row(self, row: int, saved: SavedPages) -> None:
        """Continue a saved row."""
        self.start_row(row, saved, saved.length)

    def save_row(self, row: int, length: int) -> SavedPages:
        """Keep a row's first tokens, for a later turn or for sharing."""
        return SavedPages(self._pages, tuple(self._table[row, : pages_for(length)].tolist()), length)

    def move_row(self, source: int, target: int, length: int) -> None:  # noqa: ARG002 - as other decoders need it
        """Move a row into a free slot."""
        self.drop_row(target)
        self._table[target], self._held[target] = self._table[source], self._held[source]
        self._held[source] = 0

    def drop_row(self, row: int) -> None:
        """Drop a finished row."""
        self._pages.release(self._table[row, : self._held[row]].tolist())
        self._held[row] = 0

    def saved_bytes(self, saved: SavedPages) -> int:
        """Memory of a saved row; a shared page counts for each row that refers to it."""
        return len(saved.pages) * self._pages.nbytes
