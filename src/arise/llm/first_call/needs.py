"""Estimate, before the first call, how long a command's prompts can become and what time and tokens its calls take."""

import math
from dataclasses import dataclass, replace

from arise.config import AgentConfig, Config
from arise.config.llm import EndpointConfig, ModelJudge
from arise.llm.check.cases import Cases
from arise.llm.client.spend import Budget
from arise.llm.first_call.served import LEAST_REPLY, REPLY_SHARE, Needs, Served
from arise.llm.judge.trace import LEAST_TRACE_CHARS, PROMPT_CHARS, RenderedTrace, render_trace
from arise.llm.prompts.prompt import to_json
from arise.run.calls import Usage
from arise.text import numbers

FIXED_TOKENS = 2_200
"""Tokens of the fixed part of a judge call with diagnostics; a test measures it."""
RUBRIC_TOKENS = 130
"""Tokens of a rubric in a prompt: condition, rule and name."""
RUBRIC_CHARS = 600
"""Characters of a rubric in a prompt, its JSON included; a cautious estimate."""
VERDICT_TOKENS = 30
DIAGNOSTICS_TOKENS = 600
_CHARS_PER_TOKEN = 3
_SHORTEST_TRACE = 1_000
_SHORT_TASK = 256
_TURN_TOKENS = 60
_TYPICAL = 0.5
"""A typical trace as a share of the longest one."""
_WRITING = 4
"""Writing one token takes as long as reading this many; right within a small factor for most servers."""


def judge_needs(rubrics: int, trace_tokens: int, chars_per_token: float = _CHARS_PER_TOKEN) -> Needs:
    """Return the needs of a judge for at most `rubrics` rubrics and traces of at most `trace_tokens` tokens.

    The least window holds the prompt, all rubrics, the shortest useful trace and a reply: below it the judge would
    refuse every rollout as soon as the pool is full.
    """
    prompt = math.ceil((PROMPT_CHARS + rubrics * RUBRIC_CHARS + LEAST_TRACE_CHARS) / chars_per_token)
    least = max(prompt + LEAST_REPLY, math.ceil(prompt * REPLY_SHARE / (REPLY_SHARE - 1)) + 1)
    reply = min(rubrics, 16) * VERDICT_TOKENS + DIAGNOSTICS_TOKENS
    return Needs(least, max(least, FIXED_TOKENS + rubrics * RUBRIC_TOKENS + trace_tokens + reply))


def trace_tokens(agent: AgentConfig) -> int:
    """Return the tokens of the longest trace that an agent's limits allow, by a cautious estimate."""
    observed = agent.observation_chars // _CHARS_PER_TOKEN
    written = min(agent.max_turns * agent.max_tokens, getattr(agent, "attempt_tokens", 10**9))
    return agent.max_turns * (observed + _TURN_TOKENS) + written


def run_needs(config: Config) -> Needs:
    """Return the needs of the judge of a training run."""
    per_token = config.judge.chars_per_token if isinstance(config.judge, ModelJudge) else _CHARS_PER_TOKEN
    needs = judge_needs(config.pool.max_pairs, trace_tokens(config.agent), per_token)
    return replace(needs, max_pairs=config.pool.max_pairs)


def pairs_that_fit(window: int) -> int:
    """Return the largest pool whose judge calls fit into a window together with the shortest useful trace."""
    prompt = window - max(LEAST_REPLY, window // REPLY_SHARE)
    return max(0, (prompt * _CHARS_PER_TOKEN - PROMPT_CHARS - LEAST_TRACE_CHARS) // RUBRIC_CHARS)


def cases_needs(cases: Cases, endpoint: EndpointConfig) -> tuple[Needs, int]:
    """Return the needs of judging these cases, and the tokens of their mean trace."""
    room = endpoint.context_tokens * _CHARS_PER_TOKEN
    traces = [render_trace(task, rollout, cases.pool, room) for task, rollout in cases.rollouts]
    sizes = [
        len(to_json(trace.sample)) // _CHARS_PER_TOKEN for trace in traces if isinstance(trace, RenderedTrace)
    ] or [0]
    return judge_needs(len(cases.pool), max(sizes)), sum(sizes) // len(sizes)


def annotation_needs(longest_batch: int, registry: int) -> Needs:
    """Return the needs of an annotator, from the characters of its longest batch of tasks and of the registry."""
    prompt = (longest_batch + registry) // _CHARS_PER_TOKEN + _SHORTEST_TRACE
    return Needs(prompt + LEAST_REPLY, prompt + LEAST_REPLY, judges=False)


def agent_needs(limits: AgentConfig, opening_chars: int = 0) -> Needs:
    """Return the needs of a policy behind an endpoint: at least the longest opening of a task and one reply.

    Without its length the opening counts as that of a short task. A longer conversation ends the attempt.
    """
    opening = max(_SHORT_TASK, opening_chars // _CHARS_PER_TOKEN)
    least = opening + limits.max_tokens
    return Needs(least=least, largest=max(least, opening + trace_tokens(limits)), judges=False)


@dataclass(frozen=True)
class Expected:
    """Expected time, tokens and cost of a number of judge calls; `str` gives the line for the screen."""

    calls: int
    fastest: float
    slowest: float
    usd: float | None

    @property
    def time(self) -> str:
        """Return the expected time as text."""
        between = f"{numbers.duration(self.fastest)} to {numbers.duration(self.slowest)}"
        return f"{self.calls:,} judge call{'s' * (self.calls != 1)}, {between} (all at once, or one after another)"

    def __str__(self) -> str:
        cost = "cost not known" if self.usd is None else f"about {numbers.dollars(self.usd, 4)}" if self.usd else "free"
        return f"{self.time}, {cost}"


def expected(
    served: Served,
    endpoint: EndpointConfig,
    at_once: int,
    budget: Budget,
    calls: int,
    trace: int,
    rubrics: int,
) -> Expected:
    """Estimate `calls` judge calls with this typical trace and number of rubrics, from what the first call measured."""
    prompt = FIXED_TOKENS + rubrics * RUBRIC_TOKENS + trace
    reply = rubrics * VERDICT_TOKENS + DIAGNOSTICS_TOKENS // 4
    first = max(1, served.prompt_tokens + _WRITING * served.completion_tokens)
    each = served.seconds * max(1.0, (prompt + _WRITING * reply) / first)
    price = budget.price(endpoint, Usage(prompt_tokens=prompt, completion_tokens=reply))
    return Expected(
        calls, each * math.ceil(calls / at_once), each * calls, None if price is None else price * calls / 1e9
    )


def expected_of_run(served: Served, chosen: ModelJudge, config: Config, budget: Budget) -> Expected:
    """Estimate the judge calls of one iteration of a run, as long as the pool fits into one call."""
    calls = config.train.tasks_per_iteration * config.train.group_size * chosen.votes
    rubrics = min(config.pool.max_new_pairs, chosen.rubrics_per_call)
    trace = int(_TYPICAL * trace_tokens(config.agent))
    return expected(served, chosen.endpoint, chosen.calls.concurrency, budget, calls, trace, rubrics)
