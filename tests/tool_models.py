"""Tiny pretrained models that call tools: a random Llama cloned on a few conversations of the tool agent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from arise.config import ToolAgentConfig
from arise.engines.formats.generic import GenericFormat
from arise.engines.local.cloning import CloneSpec, clone
from arise.engines.local.models import save
from arise.ports import Format
from arise.rollouts.tools import SPECS
from arise.types import FunctionCall, Message, Tokens
from tests.unit.engines.formats.families import tokenizer_of

INSTRUCTION = "Write 42 to answer.txt.\n"
SYSTEM = "Use the tools."
TOOLS = ("bash",)
COMMANDS = ("echo 42 > answer.txt", "echo 41 > answer.txt")


def demonstration(chat: Format, command: str, system: str = SYSTEM) -> Tokens:
    """One call and one closing answer, as the agent itself would have recorded them."""
    tools = [SPECS[name] for name in TOOLS]
    call = FunctionCall("call00000", "bash", {"command": command})
    ids = chat.prompt([Message("system", system), Message("user", INSTRUCTION)], tools)
    generated = [False] * len(ids)
    for said in (Message("assistant", calls=(call,)), Message("assistant", "Done.")):
        turn = chat.answer(said, tools)
        ids, generated = [*ids, *turn], [*generated, *[True] * len(turn)]
        if said.calls:
            longer = chat.extend(ids, [Message("tool", "(no output)", call_id=call.id, name="bash")], tools)
            assert longer is not None
            ids, generated = longer, [*generated, *[False] * (len(longer) - len(ids))]
    return Tokens(np.array(ids), np.array(generated), np.zeros(len(ids)), np.full(len(ids), -1, dtype=np.int64))


def tiny_llama(tokenizer: Any, window: int = 1024) -> Any:
    """A random Llama of one layer."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=window,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=None,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


def write_tool_model(
    folder: Path, family: str = "qwen3", epochs: int = 150, window: int = 1024, commands: Sequence[str] = COMMANDS
) -> Path:
    """A model folder; with epochs the model calls bash with one of the commands and then says that it is done."""
    tokenizer = tokenizer_of(family)
    model = tiny_llama(tokenizer, window)
    if epochs:
        rows, threads = (
            [demonstration(GenericFormat(tokenizer), command) for command in commands],
            torch.get_num_threads(),
        )
        torch.set_num_threads(1)  # the same weights on every machine
        clone(model, lambda _: rows, CloneSpec(epochs, 1e-2, sum(map(len, rows))))
        torch.set_num_threads(threads)
    save(model, tokenizer, folder)
    return folder


def limits(**changes: Any) -> ToolAgentConfig:
    """Small limits for small models."""
    small: dict[str, Any] = {"max_turns": 4, "max_tokens": 64, "tools": TOOLS, "system_prompt": SYSTEM}
    return ToolAgentConfig(**small | {"command_seconds": 30.0} | changes)
