"""Tokens and dollars of the judge and the reflector per iteration."""

from dataclasses import dataclass

from arise.config import Config
from arise.config.llm import ModelJudge
from arise.llm.client.spend import cost
from arise.plan.workload import Assumptions, Workload
from arise.run.calls import Usage


@dataclass(frozen=True)
class JudgeForecast:
    """Calls and tokens per iteration, pool updates included; `usd` is None if the price is not known."""

    calls: int
    input_tokens: float
    output_tokens: float
    usd: float | None


def judging(config: Config, work: Workload, assumed: Assumptions) -> JudgeForecast | None:
    """Estimate the calls of one iteration, at the full price of every token; None without a language-model judge."""
    if not isinstance(config.judge, ModelJudge):
        return None
    calls = work.rollouts * work.judge_calls
    read = calls * work.judge_input + assumed.reflect_tokens / config.pool.update_every
    written = calls * work.judge_output + 8 * work.judge_output / config.pool.update_every
    endpoint = config.judge.endpoint
    prices = {endpoint.model: endpoint.price} if endpoint.price is not None else config.budget.prices
    usage = Usage(prompt_tokens=round(read), completion_tokens=round(written))
    nano = cost(endpoint.model, endpoint.base_url, usage, prices)
    return JudgeForecast(calls, read, written, None if nano is None else nano / 1e9)
