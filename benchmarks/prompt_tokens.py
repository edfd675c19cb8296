"""Tokens of a judge's prompts, fixed and variable part, over the rollouts of a run.

    python -m benchmarks.prompt_tokens RUN --tokenizer FOLDER [--limit 20]

The fixed part is the system message and every field of the user message that is the same for all rollouts. It runs on
any version of ARISE since 0.2.0, so that two of them can be compared on the same rollouts.
"""

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from arise.config.llm import CallsConfig, EndpointConfig, ModelJudge
from arise.llm.check.run_cases import cases_of_run
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.testing import FakeLLM, always
from arise.types import Pool

FIXED = ("diagnostics_schema", "output_schema")


async def prompts(run: Path, limit: int) -> dict[str, list[dict[str, Any]]]:
    """Return the request bodies of judging the newest rollouts, by kind."""
    cases = cases_of_run(run, limit)
    calls = CallsConfig(format_attempts=1)
    found: dict[str, list[dict[str, Any]]] = {"with diagnostics": [], "verdicts only": [], "initial analysis": []}
    async with FakeLLM(always("")) as fake:
        endpoint = EndpointConfig(model="m", base_url=fake.base_url)
        client = Client(endpoint, calls, Store(":memory:"), Budget(Store(":memory:")), purpose="judge")
        judge = LanguageModelJudge(client, ModelJudge(endpoint=endpoint, calls=calls, rubrics_per_call=8))
        for task, rollout in cases.rollouts:
            await judge.judge(task, rollout, cases.pool)
            await judge.judge(task, rollout, Pool())
        await client.close()
        for ask in fake.asks:
            kind = "with diagnostics" if "diagnostics_schema" in ask.data else "verdicts only"
            found[kind if "rubrics" in ask.data else "initial analysis"].append(ask.body)
    return found


def main() -> None:
    """Print one line for each kind of request."""
    from transformers import AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--limit", type=int, default=20)
    chosen = parser.parse_args()
    encode = AutoTokenizer.from_pretrained(chosen.tokenizer).encode
    for kind, bodies in asyncio.run(prompts(chosen.run, chosen.limit)).items():
        fixed = variable = 0
        for body in bodies:
            system, user = (message["content"] for message in body["messages"])
            data = json.loads(user)
            same = len(encode(system)) + sum(len(encode(json.dumps(data[name]))) for name in FIXED if name in data)
            fixed += same
            variable += len(encode(system)) + len(encode(user)) - same
        count = len(bodies) or 1
        print(f"{kind:<18} {len(bodies):>3} prompts   fixed {fixed / count:,.0f}   variable {variable / count:,.0f}")


if __name__ == "__main__":
    main()
