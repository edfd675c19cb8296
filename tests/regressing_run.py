"""A run in the real store in which one skill is stuck and two behaviours regress while others improve."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
import tomli_w
from benchmarks.big_run import Invention, held_out

from arise.config import Config, TrainConfig
from arise.config.pool import PoolConfig
from arise.method.lifecycle import UNCHANGED
from arise.run.store import RunStore
from arise.types import Group, Pair, Rewrite

STUCK, REGRESSED = "r001", ("r002", "r003")
REWRITTEN = 2
"""How often the stuck skill gets a new text; every later refinement finds none."""
NO_WORDING = f"{UNCHANGED}every wording was tried"
ITERATIONS, EVERY = 16, 2


class Regression(Invention):
    """A policy that never shows one behaviour, whatever the skill says, and slowly loses two others."""

    def _learn(self, groups: list[Group]) -> None:
        super()._learn(groups)
        present = self.mastery.keys()
        self.mastery |= {STUCK: -1.0} if STUCK in present else {}
        self.mastery |= {name: 0.5 for name in REGRESSED if name in present}

    def _rewrite(self, pair: Pair) -> Rewrite:
        if pair.rubric.id == STUCK and pair.skill.revision >= REWRITTEN:
            return Rewrite(None, NO_WORDING.removeprefix(UNCHANGED))
        return super()._rewrite(pair)


def write_regressing_run(folder: Path) -> None:
    """Write the run with its evaluations before and after."""
    train = TrainConfig(iterations=ITERATIONS, tasks_per_iteration=4, group_size=4)
    config = Config(train=train, pool=PoolConfig(update_every=EVERY))
    invention = Regression(config)
    with closing(RunStore.open(folder)) as store:
        (folder / "config.toml").write_text(tomli_w.dumps(config.model_dump()))
        for k in range(ITERATIONS):
            store.commit(invention.iteration(k))
        names = [rubric.id for rubric in store.rubrics()]
        before = dict.fromkeys(names, 0.3) | {STUCK: 0.0} | dict.fromkeys(REGRESSED, 0.8)
        after = dict.fromkeys(names, 0.7) | {STUCK: 0.0} | dict.fromkeys(REGRESSED, 0.2)
        random = np.random.default_rng(3)
        store.save_attempts(judged("before", 0, before, random))
        store.save_attempts(judged("after", ITERATIONS, after, random))


def judged(label: str, k: int, rates: Mapping[str, float], random: np.random.Generator) -> list[tuple[object, ...]]:
    """Return the rows of an evaluation whose attempts show each behaviour at a given rate."""
    rows = []
    for row in held_out(label, k, 0.4, random):
        kinds = {rubric: ("pass" if random.random() < rate else "fail") for rubric, rate in rates.items()}
        kinds |= {rubric: "not_applicable" for rubric in rates if random.random() < 0.3}
        rows.append((*row[:-1], json.dumps(kinds)))
    return rows
