"""Tiny tokenizers with the control tokens and the template shapes of well-known model families."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

TEMPLATES = Path(__file__).parent / "templates"
CORPUS = [
    "You are a helpful assistant. List the files, then write the report to out.txt and check it.",
    '{"name": "bash", "arguments": {"command": "ls -la | grep data && cat notes.md"}}',
    "<function=bash>\n<parameter=command>\ncat <<'EOF'\nline one\nline two\nEOF\n</parameter>\n</function>",
    "def main() -> None:\n    for name, value in items.items():\n        print(name, value)\n\n\nmain()\n",
    "user\nassistant\nsystem\ntool\nerror: no such file or directory; exit code 1\n\nä ö ü — 日本語 🙂",
]


@dataclass(frozen=True)
class Family:
    """The control tokens of a family; `added` are in the vocabulary but not special, as some families have them."""

    special: Sequence[str]
    added: Sequence[str] = ()
    sentencepiece: bool = False
    bos: str | None = None
    eos: str = ""
    native: bool = True


_QWEN_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"),
)
_QWEN_ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
_MISTRAL_TOOLS = ("AVAILABLE_TOOLS", "/AVAILABLE_TOOLS", "TOOL_RESULTS", "/TOOL_RESULTS")
_DEEPSEEK_TOOLS = tuple(
    f"<｜tool▁{name}｜>"
    for name in (
        "calls▁begin",
        "calls▁end",
        "call▁begin",
        "call▁end",
        "sep",
        "outputs▁begin",
        "outputs▁end",
        "output▁begin",
        "output▁end",
    )
)

FAMILIES = {
    "chatml": Family(_QWEN_SPECIAL, eos="<|im_end|>", native=False),
    "qwen3": Family(_QWEN_SPECIAL, _QWEN_ADDED, eos="<|im_end|>"),
    "qwen3.5": Family(_QWEN_SPECIAL, _QWEN_ADDED, eos="<|im_end|>"),
    "llama-3": Family(
        (
            *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
            *("<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
        ),
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
    ),
    "mistral": Family(
        ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", *(f"[{n}]" for n in _MISTRAL_TOOLS)),
        sentencepiece=True,
        bos="<s>",
        eos="</s>",
    ),
    "glm": Family(
        ("<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
        (*_QWEN_ADDED, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        eos="<|endoftext|>",
    ),
    "deepseek": Family(
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ("<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", *_DEEPSEEK_TOOLS),
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
    ),
    "gemma": Family(
        ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
        sentencepiece=True,
        bos="<bos>",
        eos="<eos>",
        native=False,
    ),
}


def _without_added(tokenizer: Tokenizer) -> Tokenizer:
    """The same vocabulary with nothing marked as special: the trainer marks the tokens of single bytes."""
    saved = json.loads(tokenizer.to_str())
    return Tokenizer.from_str(json.dumps(saved | {"added_tokens": []}))


@cache
def tokenizer_of(name: str) -> Any:
    """The tokenizer of a family; made once, so do not change it."""
    family = FAMILIES[name]
    unknown = ["<unk>"] if family.sentencepiece else []
    tokenizer = Tokenizer(models.BPE(unk_token=unknown[0] if unknown else None, byte_fallback=family.sentencepiece))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if family.sentencepiece:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        unknown += [f"<0x{byte:02X}>" for byte in range(256)]
        alphabet = []
    else:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=unknown, initial_alphabet=alphabet, show_progress=False, max_token_length=12
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer = _without_added(tokenizer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in family.special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in family.added])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=family.bos, eos_token=family.eos)
    fast.chat_template = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    return fast
