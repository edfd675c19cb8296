"""What an engine samples and trains: requests, segments with their token records, and the settings of the loss."""

from dataclasses import dataclass

from arise.types.rollout import Tokens


@dataclass(frozen=True)
class SamplingParams:
    """How to sample one turn — `SamplingParams(max_tokens=256, stop=("</call>",))`; paper: temperature 1, top-p 1."""

    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0
    conversation: str = ""
    """Turns of one conversation share this key, so that an engine can keep their cache and their random stream."""


@dataclass(frozen=True)
class Segment:
    """What the policy generated: ids with log pi_beh, the version that made each token, and why it stopped."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    text: str
    finish: str
    """`stop` (a stop string or end-of-turn token), `length` (max_tokens) or `context` (the model's window is full)."""


@dataclass(frozen=True)
class Example:
    """One trajectory's rows with its advantage A_j; more rows do not change its weight in the loss."""

    rows: tuple[Tokens, ...]
    advantage: float


@dataclass(frozen=True)
class LossSpec:
    """Eq. 19's constants: strict ratio bounds, the dual-clip coefficient kappa, and the temperature of the rollouts.

    Behaviour log-probs are of the distribution sampled from, so pi_theta of Eq. 18 uses the same temperature.
    """

    min_ratio: float = 0.5
    max_ratio: float = 5.0
    dual_clip: float = 3.0
    temperature: float = 1.0


@dataclass(frozen=True)
class OptimSpec:
    """AdamW with linear warm-up, then constant; gradients clipped by global norm."""

    learning_rate: float = 2e-6
    warmup_updates: int = 40
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class StepStats:
    """Statistics of one update: loss, gradient norm before clipping, token counts, and the reason if it was skipped."""

    loss: float
    grad_norm: float
    learning_rate: float
    generated_tokens: int
    kept_tokens: int
    dual_clipped_tokens: int
    max_abs_log_ratio: float
    skipped: str = ""


@dataclass(frozen=True)
class PolicyRef:
    """Published weights that sampling now uses — `PolicyRef(version=12, endpoint="")`."""

    version: int
    endpoint: str = ""


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do: `Capabilities(full_parameter=True, lora=True, endpoint=False)`."""

    full_parameter: bool
    lora: bool
    endpoint: bool
    context_length: int = 0
