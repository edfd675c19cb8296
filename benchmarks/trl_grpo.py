"""TRL's GRPOTrainer driven one iteration at a time, so that it can be timed in turns with others."""

import queue
import threading
from collections.abc import Callable, Sequence
from tempfile import mkdtemp
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

Rollouts = Callable[[Any], list[list[int]]]


def _rollout_func(prompts: Sequence[list[int]], rollouts: Rollouts) -> Callable[..., dict[str, Any]]:
    def roll_out(_: list[str], trainer: Any) -> dict[str, Any]:
        completions = [row[len(p) :] for row, p in zip(rollouts(trainer.model), prompts, strict=True)]
        logprobs = [[0.0] * len(completion) for completion in completions]
        return {"prompt_ids": list(prompts), "completion_ids": completions, "logprobs": logprobs}

    return roll_out


class TrlGrpo(TrainerCallback):
    """Trains on its own thread and stops after every iteration until `iterate` is called again."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        threads: int,
        texts: Sequence[str],
        group: int,
        new_tokens: int,
        rounds: int,
        several_turns: tuple[Sequence[list[int]], Rollouts] | None = None,
    ) -> None:
        self._go: queue.Queue[None] = queue.Queue()
        self._done: queue.Queue[None] = queue.Queue()
        batch = len(texts) * group
        config = GRPOConfig(
            output_dir=mkdtemp(),
            per_device_train_batch_size=batch,
            num_generations=group,
            max_completion_length=new_tokens,
            generation_kwargs={"min_new_tokens": new_tokens},
            max_steps=rounds,
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
        self._trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_: [float(i % 2) for i in range(len(completions))],
            args=config,
            train_dataset=Dataset.from_dict({"prompt": list(texts) * rounds}),
            processing_class=tokenizer,
            callbacks=[self],
            rollout_func=_rollout_func(*several_turns) if several_turns else None,
        )
        self._thread = threading.Thread(target=self._train, args=(threads,), daemon=True)
        self._thread.start()

    def _train(self, threads: int) -> None:
        torch.set_num_threads(threads)  # every thread has a number of its own
        self._trainer.train()

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Wait for the next `iterate`."""
        self._go.get()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Hand the turn back."""
        self._done.put(None)

    def iterate(self, _: int) -> None:
        """Sample, score and update once."""
        self._go.put(None)
        self._done.get(timeout=600)

    def finish(self) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout=60)
