"""A small Llama-type model with its own tokenizer: the policy of the embedded world."""

from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from arise.engines.local.models import LoadedModel

PAD, END = "<|pad|>", "<|end|>"
ROLES = ("system", "user", "assistant", "tool")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<call>{{ (call.function or call) | tojson }}</call>{% endfor %}"
    "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def small_tokenizer(corpus: Iterable[str], vocabulary: int = 1024) -> Any:
    """Train a byte-level BPE on `corpus`: compact for similar texts, lossless for any other."""
    special = [PAD, END, *(f"<|{role}|>" for role in ROLES)]
    if vocabulary < 256 + len(special):
        raise ValueError(
            f"small_tokenizer: vocabulary = {vocabulary} must hold 256 bytes and {len(special)} control tokens"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)
    fast.chat_template = CHAT_TEMPLATE
    fast.clean_up_tokenization_spaces = False
    return fast


def small_model(
    corpus: Iterable[str],
    *,
    vocabulary: int = 1024,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 8,
    kv_heads: int = 8,
    context_length: int = 2048,
    seed: int = 0,
) -> LoadedModel:
    """Make a model, 0.9 M parameters by default; the same arguments give the same weights."""
    tokenizer = small_tokenizer(corpus, vocabulary)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=context_length,
        tie_word_embeddings=True,
        # Attention to single words forms several times faster with weights scaled for a narrow layer.
        initializer_range=hidden**-0.5,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        _lean_towards_recall(model, heads, kv_heads)
    return LoadedModel("small", model.eval(), tokenizer)


def _lean_towards_recall(model: LlamaForCausalLM, heads: int, kv_heads: int) -> None:
    """Initialise every head halfway towards attending to equal tokens and copying them.

    A narrow model spends most of its training on forming such copying heads from random weights (mimetic
    initialization, Trockman and Kolter 2023; measured in decision 7).
    """

    def for_each_head(weight: torch.Tensor) -> torch.Tensor:
        by_head: torch.Tensor = weight.unflatten(0, (kv_heads, -1))
        return by_head.repeat_interleave(heads // kv_heads, dim=0).flatten(0, 1)

    with torch.no_grad():
        for layer in model.model.layers:
            attention = layer.self_attn
            attention.q_proj.weight.lerp_(for_each_head(attention.k_proj.weight), 0.5)
            attention.o_proj.weight.lerp_(for_each_head(attention.v_proj.weight).T, 0.5)
