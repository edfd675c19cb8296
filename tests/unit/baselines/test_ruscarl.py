import asyncio
from dataclasses import replace
from typing import cast

import numpy as np

from arise.baselines.ruscarl import BarePromptRows, ScaffoldedGuidance
from arise.config.baselines import Scaffold
from arise.ports import Engine, Sandbox
from arise.types import Capability, Pair, Pool, ShownSkill, StopReason, Tally, Task, Tokens, Trajectory
from arise.world.shell_agent import SYSTEM
from tests.builders import a_pool, a_task
from tests.scripted import WordChat

POOL = a_pool({f"r{n:03d}": Capability.VERIFICATION for n in range(10)})


def shown(iteration: int, task_id: str = "x1", scaffold: Scaffold | None = None) -> list[tuple[Pair, ...]]:
    return ScaffoldedGuidance(scaffold or Scaffold(), 150, seed=3).shown(POOL, iteration, task_id, 8, Tally())


def test_the_first_of_a_group_sees_every_criterion_and_the_last_none() -> None:
    sizes = [len(part) for part in shown(0)]
    assert (sizes[0], sizes[-1]) == (10, 0)
    assert sizes == sorted(sizes, reverse=True)
    assert {pair.skill.text for pair in shown(0)[0]} == {pair.rubric.criteria_text for pair in POOL.pairs}


def test_parts_are_drawn_for_each_rollout_and_task_and_repeat_on_replay() -> None:
    assert shown(0) == shown(0)
    assert shown(0)[3] != shown(0, "x2")[3]
    assert shown(0)[3] != shown(1)[3]
    assert len({pair.rubric.id for pair in shown(0)[3]}) == len(shown(0)[3])


def test_the_scaffold_is_gone_later_and_an_empty_pool_has_none() -> None:
    assert shown(60) == [()] * 8
    assert ScaffoldedGuidance(Scaffold(), 150, 0).shown(Pool(), 0, "x1", 4, Tally()) == [()] * 4


def test_skills_can_be_the_scaffold() -> None:
    (first, *_) = shown(0, scaffold=Scaffold(text="skill"))
    assert {pair.skill.text for pair in first} == {pair.skill.text for pair in POOL.pairs}


class OneAnswer:
    """An agent that says two words after its prompt."""

    def __init__(self, chat: WordChat) -> None:
        self.chat = chat

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        del sandbox, seed
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task.instruction}]
        prompt, said = self.chat.prompt(messages), self.chat.ids("$ submit")
        ids = np.array(prompt + said, dtype=np.int64)
        generated = np.array([False] * len(prompt) + [True] * len(said))
        row = Tokens(ids, generated, np.where(generated, -0.5, 0.0), np.where(generated, 7, -1))
        return Trajectory(key, task.id, (), StopReason.FINISHED, system, (row,), shown)


class Scorer:
    """Scores every token with -2 at temperature 1."""

    async def score(self, row: Tokens, temperature: float = 1.0) -> Tokens:
        return replace(row, logprob_U=np.where(row.generated_U, -2.0 / temperature, 0.0))


def test_rows_are_trained_under_the_bare_prompt() -> None:
    chat = WordChat()
    agent = BarePromptRows(OneAnswer(chat), cast(Engine, Scorer()), chat, SYSTEM)
    place = cast(Sandbox, None)
    with_scaffold = f"{SYSTEM} Guidance : - look first"
    found = asyncio.run(agent.attempt(a_task(), place, with_scaffold, (), "k", 0))
    bare = asyncio.run(agent.attempt(a_task(), place, SYSTEM, (), "k", 0))
    assert found.system_prompt == with_scaffold
    assert found.rows[0].ids_U.tolist() == bare.rows[0].ids_U.tolist()
    assert found.rows[0].generated_U.tolist() == bare.rows[0].generated_U.tolist()
    assert found.rows[0].logprob_U[-1] == -2.0, "taken anew"
    tempered = replace(agent, temperature=0.5)
    found = asyncio.run(tempered.attempt(a_task(), place, with_scaffold, (), "k", 0))
    assert found.rows[0].logprob_U[-1] == -4.0, "at the temperature of the rollouts"
    assert bare.rows[0].logprob_U[-1] == -0.5, "as sampled"
