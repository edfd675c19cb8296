"""RuscaRL's scaffold (arXiv 2508.16949): criteria in the prompt, fewer along the group, removed early in the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import exp

import numpy as np

from arise.config.baselines import Scaffold
from arise.ports import Agent, Chat, Engine, Sandbox
from arise.types import Pair, Pool, ShownSkill, Tally, Task, Tokens, Trajectory


def decay(iteration: int, iterations: int, start: float = 0.2, steepness: float = 125.0) -> float:
    """Return the remaining share of the scaffold in iteration 0, 1, ...: a steep sigmoid, one half at `start`."""
    progress = min(1.0, iteration / (iterations - 1)) if iterations > 1 else 0.0
    return 1.0 / (1.0 + exp(steepness * (progress - start)))


def ratio(member: int, group_size: int, left: float) -> float:
    """Return the share of criteria that a member of a group sees: all for the first, none for the last."""
    return (group_size - 1 - member) / (group_size - 1) * left if group_size > 1 else 1.0


def shown_count(criteria: int, share: float) -> int:
    """Return the number of criteria in a share, rounded half to even as in the published script, with no minimum."""
    return round(criteria * share)


class ScaffoldedGuidance:
    """Show each rollout a random subset of the pool's criteria, regardless of the state of their skills."""

    def __init__(self, settings: Scaffold, iterations: int, seed: int) -> None:
        self.settings, self.iterations, self.seed = settings, iterations, seed

    def shown(
        self,
        pool: Pool,
        iteration: int,
        task_id: str,
        group_size: int,
        unguided: Tally,  # noqa: ARG002
    ) -> list[tuple[Pair, ...]]:
        """Return the pairs that each rollout of the group sees, with the scaffold's text instead of the skill."""
        left = decay(iteration, self.iterations, self.settings.start, self.settings.steepness)
        scaffold = [self._text(pair) for pair in pool.pairs]
        random = np.random.default_rng([self.seed, iteration, *blake2b(task_id.encode(), digest_size=8).digest()])
        return [self._part(scaffold, ratio(j, group_size, left), random) for j in range(group_size)]

    def _part(self, scaffold: Sequence[Pair], share: float, random: np.random.Generator) -> tuple[Pair, ...]:
        if share >= 1.0:
            return tuple(scaffold)
        chosen = random.choice(len(scaffold), shown_count(len(scaffold), share), replace=False) if scaffold else ()
        return tuple(scaffold[int(n)] for n in chosen)

    def _text(self, pair: Pair) -> Pair:
        text = pair.rubric.criteria_text if self.settings.text == "criteria" else pair.skill.text
        return replace(pair, skill=replace(pair.skill, text=text))


@dataclass(frozen=True)
class BarePromptRows:
    """Act with the scaffold and train without it: restore the bare prompt and rescore log-probs.

    The published method learns p(answer | bare prompt) from answers found with the scaffold.
    """

    agent: Agent
    engine: Engine
    chat: Chat
    bare: str
    """The system prompt without the scaffold."""
    temperature: float = 1.0

    async def attempt(
        self, task: Task, sandbox: Sandbox, system: str, shown: tuple[ShownSkill, ...], key: str, seed: int
    ) -> Trajectory:
        """Run the attempt, then rebuild its token rows with the bare prompt."""
        trajectory = await self.agent.attempt(task, sandbox, system, shown, key, seed)
        if system == self.bare:
            return trajectory
        before, after = (self._prompt(text, task) for text in (system, self.bare))
        unscored = [_with_prompt(row, len(before), after) for row in trajectory.rows]
        bare = [await self.engine.score(row, self.temperature) for row in unscored]
        return replace(trajectory, rows=tuple(bare))

    def _prompt(self, system: str, task: Task) -> list[int]:
        return self.chat.prompt([{"role": "system", "content": system}, {"role": "user", "content": task.instruction}])


def _with_prompt(row: Tokens, old_length: int, prompt: Sequence[int]) -> Tokens:
    """Return the row with its prompt replaced."""
    return Tokens(
        np.concatenate([np.array(prompt, dtype=np.int64), row.ids_U[old_length:]]),
        np.concatenate([np.zeros(len(prompt), dtype=np.bool_), row.generated_U[old_length:]]),
        np.concatenate([np.zeros(len(prompt)), row.logprob_U[old_length:]]),
        np.concatenate([np.full(len(prompt), -1, dtype=np.int64), row.version_U[old_length:]]),
    )
