"""`arise skills test`: the same tasks without skills, with each one alone and with all of them, paired by task."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, get_args

import yaml

from arise.analyze.against import Comparison, compare
from arise.analyze.behaviours import AnalysedAttempt
from arise.analyze.found import Triage
from arise.compose.build import redacting
from arise.compose.harnesses import HarnessParts, called_limits, open_harness, remote_harness_agent
from arise.compose.imports import imported
from arise.compose.judges import observer
from arise.compose.sandboxes import open_sandboxes
from arise.config import Config, HarborTasks, NoJudging, ToolAgentConfig
from arise.config.agent import HarnessAgentConfig, ImportedAgent, ShellAgentConfig
from arise.config.llm import BudgetConfig, EndpointConfig
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import Evaluator, raw_file, read_raw
from arise.llm.agents.agent import endpoint_agent
from arise.llm.agents.tool_agent import ToolEndpointAgent
from arise.observe.waits import bars
from arise.ports import Agent
from arise.rollouts.collect import Collector
from arise.rollouts.guidance import SkillLimit, guessed_tokens
from arise.run.calls import Store
from arise.run.folder import claim
from arise.run.store import RunStore
from arise.tasks import CorpusError, load_corpus
from arise.types import Attempt, Capability, Pair, Pool, Rubric, Skill, TaskSpec

log = logging.getLogger(__name__)

NONE, ALL = "without", "all"
HARNESSES: tuple[str, ...] = get_args(HarnessAgentConfig.model_fields["kind"].annotation)
CALLS_FILE = "policy-calls.db"


@dataclass(frozen=True)
class SkillsTest:
    """The settings of a test: skills, tasks, model and cost cap."""

    skills: Path
    tasks: Path
    endpoint: EndpointConfig
    out: Path
    attempts: int
    max_usd: float
    agent: ShellAgentConfig | ToolAgentConfig | HarnessAgentConfig | ImportedAgent

    @property
    def label(self) -> str:
        """Return the name under which attempts are stored; it differs by agent and model."""
        facts = f"{self.endpoint.model} {self.agent.model_dump_json()}"
        return f"skills-{blake2b(facts.encode(), digest_size=4).hexdigest()}"


def limits_of(agent: str, turns: int) -> ShellAgentConfig | ToolAgentConfig | HarnessAgentConfig | ImportedAgent:
    """Return the section of the agent that `--agent` names."""
    if agent in HARNESSES:
        return HarnessAgentConfig.model_validate({"kind": agent, "max_turns": turns})
    limits: dict[str, Any] = {
        "max_turns": turns, "max_tokens": 2048, "command_seconds": 60.0, "observation_chars": 8000,
    }  # fmt: skip
    if agent == "arise":
        return ShellAgentConfig(**limits)
    return ToolAgentConfig(**limits) if agent == "tools" else ImportedAgent(path=agent, **limits)


@dataclass(frozen=True)
class Arm:
    """Attempts with the same skills, and the cost of their calls."""

    name: str
    attempts: tuple[AnalysedAttempt, ...]
    usd: float


@dataclass(frozen=True)
class Effect:
    """One arm compared with the arm without skills."""

    name: str
    found: Comparison
    usd: float

    @property
    def verdict(self) -> str:
        """Return "helps" or "harms" for a significant difference, else "cannot tell"."""
        difference = self.found.passes.difference
        if difference is None or self.found.passes.p >= 0.05 or difference == 0:
            return "cannot tell"
        return "helps" if difference > 0 else "harms"


def read_skills(folder: Path) -> tuple[Pair, ...]:
    """Return the SKILL.md packages of a folder, by name; agents see the text below the front matter."""
    files = sorted([*folder.glob("*/SKILL.md"), *folder.glob("SKILL.md")])
    if not files:
        raise _refused(f"{folder} holds no SKILL.md", "name a folder of packages, as `arise analyze --out` writes")
    return tuple(_skill(file) for file in files)


def _skill(file: Path) -> Pair:
    text = file.read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2) if text.startswith("---\n") and text.count("---\n") > 1 else ("", "", text)
    head = yaml.safe_load(front) or {}
    name = str(head.get("name") or file.parent.name)
    if not body.strip():
        raise _refused(f"{file} has no text below its front matter", "write what an agent should do")
    rubric = Rubric(name, str(head.get("description") or name), "", Capability.EXECUTION, "", "")
    return Pair(rubric, Skill(body.strip(), active=True))


def run_test(test: SkillsTest, write: Callable[[str], None]) -> list[Effect]:
    """Run and compare all arms; an arm with all attempts on record is not run again."""
    pairs, tasks = read_skills(test.skills), _tasks(test.tasks)
    shown = {NONE: (), **({pair.rubric.id: (pair,) for pair in pairs} if len(pairs) > 1 else {}), ALL: pairs}
    with bars(write), closing(RunStore.open(test.out, claim(test.out))) as store:
        arms = asyncio.run(_arms(test, store, tasks, shown))
    base = arms[0]
    return [Effect(arm.name, compare(arm.attempts, base.attempts, ()), arm.usd) for arm in arms]


def _tasks(folder: Path) -> list[TaskSpec]:
    try:
        return list(load_corpus(folder))
    except CorpusError as error:
        raise AriseError("tasks", Exit.TASKS, str(error), "nothing was tried", "fix or remove these tasks") from None


async def _arms(
    test: SkillsTest,
    store: RunStore,
    tasks: Sequence[TaskSpec],
    shown: dict[str, tuple[Pair, ...]],
) -> list[Arm]:
    own = HarborTasks(train=str(test.tasks), evaluation=str(test.tasks))
    config = Config(judge=NoJudging(), tasks=own, agent=test.agent, budget=BudgetConfig(max_usd=test.max_usd))
    record = test.out / CALLS_FILE
    limit = SkillLimit.of(config.guidance.max_tokens, test.endpoint.context_tokens, guessed_tokens)
    by_id = {task.task.id: task for task in tasks}
    longest = max((len(task.task.instruction) for task in tasks), default=0)
    async with (
        open_harness(config) as harness,
        _open_agent(test, config, record, longest, harness) as agent,
        open_sandboxes(config, test.out, harness) as (sandboxes, verifier),
    ):
        known = redacting(config, agent)
        collector = Collector(known, sandboxes, verifier, by_id, store, 0, limit)
        evaluator = Evaluator(collector, tasks, test.attempts, store, None, Pool())
        return [await _arm(evaluator, f"{test.label}/{name}", pairs, record) for name, pairs in shown.items()]


@asynccontextmanager
async def _open_agent(
    test: SkillsTest, config: Config, record: Path, longest: int, harness: HarnessParts | None
) -> AsyncIterator[Agent]:
    """Open the agent; a class of the user calls the model itself, so its calls are neither recorded nor counted."""
    if isinstance(test.agent, ImportedAgent):
        yield imported("--agent", test.agent, endpoint=test.endpoint, limits=test.agent)
        return
    endpoint, limits = called_limits(test.endpoint, test.agent)
    async with endpoint_agent(
        endpoint, limits, config.budget, record, observer(test.out), again=True, opening_chars=longest
    ) as agent:
        if harness is not None and isinstance(agent, ToolEndpointAgent):
            agent = remote_harness_agent(harness, config, agent)
        yield agent


async def _arm(evaluator: Evaluator, label: str, pairs: Sequence[Pair], record: Path) -> Arm:
    name = label.rpartition("/")[2]
    wanted = len(evaluator.tasks) * evaluator.attempts
    file, before = raw_file(evaluator.store.folder, label), _spent(record)
    records = read_raw(evaluator.store.folder, label) if file.exists() else []
    if len(records) != wanted:
        log.info("skills shown: %s (%d attempts)", name, wanted)
        records = await evaluator.take_guided(label, 0, pairs)
    return Arm(name, tuple(_attempt(row) for row in records), _spent(record) - before)


def _spent(record: Path) -> float:
    with closing(Store(record)) as store:
        return sum(total.nano_usd for total in store.totals()) / 1e9


def _attempt(tried: Attempt) -> AnalysedAttempt:
    """Return an attempt for the comparison; an infrastructure fault has no verdict."""
    triage = Triage.INFRASTRUCTURE if tried.success is None else Triage.VALID
    return AnalysedAttempt(
        f"{tried.task_id}/{tried.attempt}", "arise", tried.task_id, "", "", "", triage, tried.success, tried.reward,
        tried.fault, len(tried.rollout.trajectory.turns), {},
    )  # fmt: skip


def _refused(what: str, remedy: str) -> AriseError:
    return AriseError("skills", Exit.CONFIG, what, "nothing was tried", remedy)
