"""A GGUF file like SmolLM2's, but with two layers of eight numbers, for the loading code."""

from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers

HIDDEN, INNER, HEADS, KV_HEADS, LAYERS = 16, 24, 4, 2, 2
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_gguf(path: Path) -> None:
    """Write the file: a byte-level tokenizer with ChatML and random Llama weights."""
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "ll"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3))
    writer.add_token_merges(["l l"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHATML)
    _add_tensors(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tensors(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(0)
    kv_width = HIDDEN // HEADS * KV_HEADS
    shapes = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (kv_width, HIDDEN), "attn_v": (kv_width, HIDDEN)}
    shapes |= {"attn_output": (HIDDEN, HIDDEN), "ffn_down": (HIDDEN, INNER)}
    shapes |= {"ffn_gate": (INNER, HIDDEN), "ffn_up": (INNER, HIDDEN)}
    writer.add_tensor("token_embd.weight", random.normal(size=(vocabulary, HIDDEN)).astype(np.float32))
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, dtype=np.float32))
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", random.normal(size=shape).astype(np.float32))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(HIDDEN, dtype=np.float32))
