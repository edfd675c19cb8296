"""Small values for the language-model tests."""

from arise.config.llm import BudgetConfig, CallsConfig, EndpointConfig, ModelJudge, ModelReflector
from arise.llm.client.client import Client, Observe
from arise.llm.client.spend import Budget
from arise.llm.judge.judge import LanguageModelJudge
from arise.run.calls import Store
from arise.testing import FakeLLM
from arise.types import (
    Capability,
    Observation,
    Pair,
    Pool,
    Rollout,
    Rubric,
    ShownSkill,
    Skill,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)

TASK = Task("csv-007", "Clean the table and write the totals.", ("data-cleaning-and-normalization",), "data")
QUICK = CallsConfig(
    concurrency=32, request_timeout=2.0, deadline=8.0, transport_attempts=3, breaker_after=1000, breaker_cooldown=0.2
)
PATIENT = QUICK.model_copy(update={"request_timeout": 60.0, "deadline": 300.0})
"""Where requests are counted: on a busy machine a reply may take longer than `QUICK` waits."""


def rubric(number: int) -> Rubric:
    """A rubric whose rule names its number, so that a script can tell rubrics apart."""
    return Rubric(
        f"r{number:03d}",
        f"The agent keeps habit {number}.",
        "error_response",
        Capability.DEBUGGING,
        "This rubric applies to every task.",
        f"Pass if habit {number} shows in the trace; fail if it does not.",
    )


def pool(count: int, version: int = 1) -> Pool:
    return Pool(tuple(Pair(rubric(i), Skill(f"Keep habit {i}.")) for i in range(1, count + 1)), version, count)


def rollout(text: str = "ls", name: str = "t0", turns: int = 2, shown: tuple[ShownSkill, ...] = ()) -> Rollout:
    steps = tuple(
        Turn(f"step {i}", (ToolCall("bash", {"command": text}, f"c{i}"),), (Observation(f"out {i}", call_id=f"c{i}"),))
        for i in range(turns)
    )
    trajectory = Trajectory(name, TASK.id, steps, StopReason.FINISHED, "You are an agent.", (), shown)
    return Rollout(trajectory, 1.0, True)


def client(
    fake: FakeLLM,
    calls: CallsConfig = QUICK,
    store: Store | None = None,
    budget: BudgetConfig | None = None,
    observe: Observe | None = None,
    model: str = "judge-1",
    allow: tuple[str, ...] = (),
    contract: int = 1,
) -> Client:
    store = store or Store()
    endpoint = EndpointConfig(model=model, base_url=fake.base_url)
    spending = Budget(store, budget)
    return Client(
        endpoint, calls, store, spending, purpose="judge", allow_change=allow, observe=observe, contract=contract
    )


def judge(
    fake: FakeLLM,
    through: Client | None = None,
    observe: Observe | None = None,
    salt: str = "test",
    per_call: int = 16,
    reasons: bool = False,
) -> LanguageModelJudge:
    asks = through or client(fake, observe=observe)
    settings = ModelJudge(endpoint=asks.endpoint, calls=asks.calls, rubrics_per_call=per_call, reasons=reasons)
    return LanguageModelJudge(asks, settings, observe=observe, salt=salt)


def reflector_settings(fake: FakeLLM, calls: CallsConfig = QUICK) -> ModelReflector:
    return ModelReflector(endpoint=EndpointConfig(model="reflector-1", base_url=fake.base_url), calls=calls)
