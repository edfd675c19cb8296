"""TRL's GRPOTrainer in a process of its own, one iteration at a time, so that it can be timed in turns with others.

python -m benchmarks.trl_grpo TURNS TOKENS PROMPT_TOKENS     trains once for every line on its standard input
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from arise.engines.chat import ChatFormat
from benchmarks.conversations import OBSERVATION, conversations, fresh_model, run_generate
from benchmarks.side_by_side import ROUNDS

GROUP = 8


class Turns(TrainerCallback):
    """Waits for a line before every iteration and answers with one after it."""

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Wait for one's turn."""
        sys.stdin.readline()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Hand the turn back."""
        print("done", file=sys.__stdout__, flush=True)


def several_turns(prompts: Sequence[list[int]], rollouts: Callable[[Any], list[list[int]]]) -> Callable[..., Any]:
    """TRL makes one turn by itself; more need its hook for custom rollouts."""

    def roll_out(_: list[str], trainer: Any) -> dict[str, Any]:
        completions = [row[len(p) :] for row, p in zip(rollouts(trainer.model), prompts, strict=True)]
        logprobs = [[0.0] * len(completion) for completion in completions]
        return {"prompt_ids": list(prompts), "completion_ids": completions, "logprobs": logprobs}

    return roll_out


def train(turns: int, length: int, prompt_tokens: int, folder: str) -> None:
    """As many iterations as there are rounds."""
    loaded = fresh_model()
    prompts = conversations(loaded.tokenizer, 64, 64 // GROUP, prompt_tokens)
    observation = ChatFormat(loaded.tokenizer).extend([], OBSERVATION)
    lengths = [[length] * turns for _ in prompts]
    rollouts = partial(run_generate, rounds=[prompts], lengths=lengths, observation=observation)
    texts = [loaded.tokenizer.decode(prompt) for prompt in prompts[::GROUP]]
    config = GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=len(prompts),
        num_generations=GROUP,
        max_completion_length=length,
        generation_kwargs={"min_new_tokens": length},
        max_steps=ROUNDS + 1,
        learning_rate=1e-6,
        beta=0.0,
        top_k=0,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    GRPOTrainer(
        model=loaded.model,
        reward_funcs=lambda completions, **_: [float(i % 2) for i in range(len(completions))],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": texts * (ROUNDS + 1)}),
        processing_class=loaded.tokenizer,
        callbacks=[Turns()],
        rollout_func=several_turns(prompts, rollouts) if turns > 1 else None,
    ).train()


if __name__ == "__main__":
    sys.stdout = sys.stderr  # what TRL prints is not an answer
    with TemporaryDirectory() as folder:
        turns, length, prompt_tokens = map(int, sys.argv[1:])
        train(turns, length, prompt_tokens, folder)
