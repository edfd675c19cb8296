"""Checks that every engine makes: of a request to sample, of the rows of an update, and of updates that fail in a row.

Nothing here needs torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arise.engines.faults import EngineFault
from arise.types import Example, SamplingParams, Tokens

MAX_FAILURES = 3


@dataclass(frozen=True, eq=False)
class TrainingRow:
    """One row of tokens with its trajectory's advantage."""

    tokens: Tokens
    advantage: float

    @property
    def generated_tokens(self) -> int:
        return int(self.tokens.generated_U.sum())

    @property
    def prompt(self) -> bytes:
        return self.tokens.ids_U[: int(self.tokens.generated_U.argmax())].tobytes()


def check_request(prompt_ids: Sequence[int], params: SamplingParams, vocabulary: int, window: int) -> None:
    """Raise a ValueError that names what is wrong with a request to sample."""
    if not prompt_ids or not 0 <= min(prompt_ids) <= max(prompt_ids) < vocabulary:
        raise ValueError(f"sample: prompt_ids must be one or more ids below {vocabulary}, the model's vocabulary")
    if len(prompt_ids) > window:
        raise ValueError(
            f"sample: the prompt has {len(prompt_ids)} tokens, the model's window is {window}: "
            "end the conversation before it overflows, or choose a model with a longer window"
        )
    if params.max_tokens < 1 or params.temperature <= 0.0 or not 0.0 < params.top_p <= 1.0 or "" in params.stop:
        raise ValueError(f"sample: need max_tokens >= 1, temperature > 0, 0 < top_p <= 1, no empty stop; got {params}")


def training_rows(examples: Sequence[Example], context_length: int) -> list[TrainingRow]:
    """Return the validated rows of all examples that contain generated tokens."""
    rows = []
    for number, example in enumerate(examples):
        for tokens in example.rows:
            generated_U = tokens.generated_U
            if len(tokens) > context_length:
                raise ValueError(f"example {number} has {len(tokens)} tokens, the model's window is {context_length}")
            if len(tokens) and generated_U[0]:
                raise ValueError(f"example {number} marks its first token as generated, but no token comes before it")
            if not (np.isfinite(tokens.logprob_U[generated_U]).all() and math.isfinite(example.advantage)):
                raise ValueError(
                    f"example {number} has a log-prob or advantage that is not finite: drop it from the batch"
                )
            if generated_U.any():
                rows.append(TrainingRow(tokens, example.advantage))
    return rows


def skip_reason(loss: float, grad_norm: float) -> str:
    """Return why an update must not be taken, or an empty string."""
    if not math.isfinite(loss):
        return "the loss is not finite"
    if not math.isfinite(grad_norm):
        return "the gradient is not finite"
    # AdamW would still move by its momentum; an empty batch must not change the weights.
    return "" if grad_norm > 0.0 else "the gradient is zero"


@dataclass
class UpdateCount:
    """`updates` counts the updates taken, `failures` consecutive non-finite ones."""

    updates: int = 0
    failures: int = 0

    def count(self, skipped: str, finite: bool) -> None:
        """Count one update; an empty batch neither extends nor ends a row of failures."""
        if not skipped:
            self.updates, self.failures = self.updates + 1, 0
        elif not finite:
            self.failures += 1
        if self.failures >= MAX_FAILURES:
            raise EngineFault(
                f"three updates in a row were skipped because {skipped}; the weights are still those of update "
                f"{self.updates}"
            )
