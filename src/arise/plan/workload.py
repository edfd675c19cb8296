"""What an iteration consists of: rollouts, turns, tokens, judge calls. Every assumption has a name and a default."""

from dataclasses import dataclass, fields, replace
from math import ceil

from arise.config import Config
from arise.errors import AriseError, Exit


@dataclass(frozen=True)
class Assumptions:
    """Means per rollout or per call that no configuration states; change one with `--assume turns=25`.

    The defaults describe containerised terminal tasks and a reasoning model. Measure your own with `--from RUN`.
    """

    turns: float = 40.0
    """Turns of a rollout."""
    generated: float = 12_000.0
    """Tokens that the policy generates in a rollout."""
    observed: float = 24_000.0
    """Tokens of tool output in a rollout."""
    prompt: float = 4_000.0
    """Tokens of the system message, tools and instruction."""
    spread: float = 0.6
    """Standard deviation of the logarithm of a rollout's length; 0 makes all rollouts equally long."""
    tool_seconds: float = 3.0
    """Seconds of one tool call."""
    start_seconds: float = 5.0
    """Seconds to start a sandbox."""
    verify_seconds: float = 30.0
    """Seconds of the verifier."""
    judge_seconds: float = 20.0
    """Seconds of one judge call."""
    judge_concurrency: float = 64.0
    """Judge calls at a time."""
    judge_output: float = 1_500.0
    """Tokens of a judge's reply, reasoning included."""
    judge_fixed: float = 2_200.0
    """Tokens of the fixed part of a judge prompt."""
    rubrics: float = 16.0
    """Mean number of rubrics in the pool."""
    reflect_seconds: float = 120.0
    """Seconds of one pool update."""
    reflect_tokens: float = 150_000.0
    """Input tokens of one pool update."""
    prefill_efficiency: float = 0.45
    """Share of the peak operations reached while reading prompts."""
    train_efficiency: float = 0.35
    """Share of the peak operations reached in training."""
    bandwidth_efficiency: float = 0.6
    """Share of the peak memory bandwidth reached in decoding."""
    decode_overhead: float = 0.004
    """Seconds per decoding step besides memory and arithmetic."""
    update_overhead: float = 20.0
    """Seconds per update besides arithmetic: loading rows, optimizer, gathering."""
    cache_share: float = 0.9
    """Share of a sampling GPU's memory that weights and cache may use."""
    bytes_per_token: float = 8.0
    """Disk per token of a stored rollout; `python -m benchmarks.driver` measures it."""


@dataclass(frozen=True)
class Workload:
    """One iteration: `rollouts` conversations of `turns` turns; `longest` is the row length that memory must hold."""

    rollouts: int
    group_size: int
    turns: float
    generated: float
    observed: float
    prompt: float
    longest: int
    stretch: float
    """How many times its mean a rollout may be long before a limit ends it."""
    judge_calls: int
    judge_input: float
    judge_output: float

    @property
    def tokens(self) -> float:
        """Tokens of one rollout's row at its end."""
        return self.prompt + self.generated + self.observed

    @property
    def read_per_generated(self) -> float:
        """Tokens read per token generated, if every turn reuses the cache of the turns before it."""
        return (self.prompt + self.observed) / max(1.0, self.generated)


def assume(changes: list[str], base: Assumptions | None = None) -> Assumptions:
    """Return the assumptions with changes of the form `turns=25`; raise on an unknown name or a bad number."""
    result = base or Assumptions()
    names = [field.name for field in fields(Assumptions)]
    for change in changes:
        name, _, text = change.partition("=")
        if name not in names:
            raise _bad(f"--assume {change}: there is no assumption {name!r}", f"use one of: {', '.join(names)}")
        try:
            value = float(text)
        except ValueError:
            raise _bad(f"--assume {change}: {text!r} is not a number", f"write --assume {name}=12.5") from None
        if not 0 <= value < float("inf"):
            raise _bad(f"--assume {change}: must be zero or more", f"write --assume {name}=12.5")
        result = replace(result, **{name: value})
    return result


def workload_of(config: Config, assumed: Assumptions) -> Workload:
    """Combine the configuration with the assumptions; limits of the agent and of the context bound them."""
    train, agent = config.train, config.agent
    turns = max(1.0, min(assumed.turns, getattr(agent, "max_turns", assumed.turns)))
    most = min(getattr(agent, "attempt_tokens", float("inf")), turns * getattr(agent, "max_tokens", float("inf")))
    generated = min(assumed.generated, most)
    room = max(1.0, config.sampling.context_length - assumed.prompt)
    fits = min(1.0, room / max(1.0, generated + assumed.observed))
    generated, observed = generated * fits, assumed.observed * fits
    calls = 0 if config.judge.kind == "none" else max(1, ceil(assumed.rubrics / _rubrics_per_call(config)))
    trajectory = assumed.prompt + generated + observed
    return Workload(
        rollouts=train.tasks_per_iteration * train.group_size,
        group_size=train.group_size,
        turns=turns,
        generated=generated,
        observed=observed,
        prompt=assumed.prompt,
        longest=config.sampling.context_length,
        stretch=max(1.0, min(getattr(agent, "max_turns", 1e9) / turns, config.sampling.context_length / trajectory)),
        judge_calls=calls,
        judge_input=assumed.judge_fixed + trajectory,
        judge_output=assumed.judge_output,
    )


def _rubrics_per_call(config: Config) -> int:
    return getattr(config.judge, "rubrics_per_call", 16)


def _bad(what: str, remedy: str) -> AriseError:
    return AriseError("plan", Exit.CONFIG, what, "nothing was planned", remedy)
