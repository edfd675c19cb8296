"""Shapes of models: what decides their memory and speed, from a `config.json` or from the table of known models."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arise.config import Config
from arise.config.schema import SmallModel
from arise.errors import AriseError, Exit


@dataclass(frozen=True)
class ModelShape:
    """A decoder — `ModelShape("qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936)`.

    `attention_layers` counts the layers whose cache grows with the context; 0 means all of them. `active` is the number
    of parameters that one token uses, below `parameters` in a mixture of experts.
    """

    name: str
    layers: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool = False
    attention_layers: int = 0
    experts: int = 0
    active_experts: int = 0
    gated: bool = False
    """Attention has an output gate, as large as its queries."""

    @property
    def caching_layers(self) -> int:
        return self.attention_layers or self.layers

    @property
    def parameters(self) -> int:
        return self._outside + self.layers * (self._attention + max(1, self.experts) * self._expert)

    @property
    def active(self) -> int:
        return self._outside + self.layers * (self._attention + max(1, self.active_experts) * self._expert)

    @property
    def cache_bytes(self) -> int:
        """Bytes of keys and values of one token, in 16 bits."""
        return self.caching_layers * 2 * self.kv_heads * self.head_size * 2

    @property
    def _outside(self) -> int:
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def _attention(self) -> int:
        return self.hidden * self.head_size * ((3 if self.gated else 2) * self.heads + 2 * self.kv_heads)

    @property
    def _expert(self) -> int:
        return 3 * self.hidden * self.feed_forward


KNOWN = {
    shape.name: shape
    for shape in (
        ModelShape("smollm2-135m", 30, 576, 1536, 9, 3, 64, 49_152, tied=True),
        ModelShape("qwen3-4b", 36, 2560, 9728, 32, 8, 128, 151_936, tied=True),
        ModelShape("qwen3-8b", 36, 4096, 12_288, 32, 8, 128, 151_936),
        ModelShape("qwen3-14b", 40, 5120, 17_408, 40, 8, 128, 151_936),
        ModelShape("qwen3-32b", 64, 5120, 25_600, 64, 8, 128, 151_936),
        ModelShape("qwen3.5-27b", 64, 5120, 17_408, 24, 4, 256, 248_320, attention_layers=16, gated=True),
        ModelShape("llama-3.1-8b", 32, 4096, 14_336, 32, 8, 128, 128_256),
    )
}
"""Known models by the last part of their name. A layer of linear attention counts like one of gated attention: about
the same number of weights, and no cache that grows."""

FIELDS = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")


def shape_of(config: Config) -> ModelShape:
    """Return the shape of the configured model; raise if it is neither a folder with a `config.json` nor known."""
    model = config.model
    if isinstance(model, SmallModel):
        return ModelShape(
            "small", model.layers, model.hidden, model.hidden * 11 // 4, 8, 8, model.hidden // 8, 1024, tied=True
        )
    file = Path(model.name).expanduser() / "config.json"
    if file.is_file():
        return read_shape(model.name, json.loads(file.read_text()), file)
    short = model.name.rsplit("/", 1)[-1].lower().removesuffix("-instruct")
    if short not in KNOWN:
        raise _unknown(f"the shape of {model.name!r} is not known", f"or one of {', '.join(sorted(KNOWN))}")
    return KNOWN[short]


def read_shape(name: str, values: Mapping[str, Any], file: Path) -> ModelShape:
    """Read the shape from a Hugging Face `config.json`."""
    text = values.get("text_config", values)
    missing = [field for field in FIELDS if not isinstance(text.get(field), int)]
    if missing:
        raise _unknown(f"{file} has no {missing[0]}", "of a causal language model")
    layers, hidden, feed_forward, heads, vocabulary = (text[field] for field in FIELDS)
    kinds = text.get("layer_types") or []
    return ModelShape(
        name=Path(name).name,
        layers=layers,
        hidden=hidden,
        feed_forward=text.get("moe_intermediate_size") or feed_forward,
        heads=heads,
        kv_heads=text.get("num_key_value_heads") or heads,
        head_size=text.get("head_dim") or hidden // heads,
        vocabulary=vocabulary,
        tied=bool(values.get("tie_word_embeddings", text.get("tie_word_embeddings", False))),
        attention_layers=sum(kind == "full_attention" for kind in kinds),
        experts=text.get("num_experts") or text.get("num_local_experts") or 0,
        active_experts=text.get("num_experts_per_tok") or 0,
        gated=bool(text.get("attn_output_gate", False)),
    )


def _unknown(what: str, detail: str) -> AriseError:
    remedy = f"set model.name to a folder with the config.json {detail}"
    return AriseError("plan", Exit.CONFIG, what, "nothing was planned", remedy)
