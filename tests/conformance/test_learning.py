"""A check that cannot be faked: a policy learns which words earn a reward, and only from true advantages."""

import asyncio

import numpy as np
import pytest
from tests.conformance.rollouts import row_of

from arise.engines.chat import ChatFormat
from arise.engines.local import LocalEngine
from arise.engines.local.small_model import small_model
from arise.types import Example, LossSpec, OptimSpec, SamplingParams

CONTEXTS = ("red", "blue", "green", "white", "black", "brown", "pink", "gold")
PAYS = 4
"""One token in four pays: noise alone lets each context drift to some token, seldom to one that pays."""
GROUP = 16


async def mean_rewards(seed: int, shuffled: bool, updates: int = 60) -> list[float]:
    """In each context other tokens pay: the policy must read its prompt."""
    loaded = small_model([" ".join(CONTEXTS)], vocabulary=270, hidden=64, layers=2, context_length=64, seed=seed)
    engine = LocalEngine(loaded.model, loaded.tokenizer, end_ids=[0])
    chat, random = ChatFormat(loaded.tokenizer), np.random.default_rng(seed)
    pays = {context: random.permutation(len(loaded.tokenizer)) % PAYS == 0 for context in CONTEXTS}
    means = []
    for update in range(updates):
        batch, rewards = list[Example](), list[float]()
        for context in CONTEXTS:
            prompt = chat.prompt([{"role": "user", "content": context}])
            segments = await engine.sample(prompt, SamplingParams(2, seed=update, conversation=context), n=GROUP)
            reward = np.array([pays[context][list(s.ids)].mean() for s in segments])
            advantage = (reward - reward.mean()) / (reward.std() + 1e-9)
            advantage = random.permutation(advantage) if shuffled else advantage
            rows = [row_of([*prompt, *s.ids], [(len(prompt), s)]) for s in segments]
            batch += [Example((row,), float(a)) for row, a in zip(rows, advantage, strict=True)]
            rewards += reward.tolist()
        await engine.train_step(batch, LossSpec(), OptimSpec(learning_rate=3e-3, warmup_updates=5))
        await engine.publish()
        means.append(float(np.mean(rewards)))
    engine.close()
    return means


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_the_policy_learns_from_true_advantages_only(seed: int) -> None:
    learned = asyncio.run(mean_rewards(seed, shuffled=False))
    assert learned[0] < 0.4
    assert np.mean(learned[-3:]) >= 0.95
    assert max(asyncio.run(mean_rewards(seed, shuffled=True))) < 0.6
