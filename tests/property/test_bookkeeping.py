"""Ledger and coverage against literal oracles, over random histories of observations and pool updates."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arise.method.coverage import CoverageMap
from arise.method.ledger import CAPABILITIES, Ledger, contributions
from arise.types import Capability
from tests.builders import NAN, Floats, a_pool, close
from tests.property.oracles import SlowCoverage, SlowLedger

TYPES = ("d0", "d1", "d2")
TASKS = ("x0", "x1", "x2", "x3")
SEEDS = st.integers(0, 2**32 - 1)


def next_pool(
    random: np.random.Generator, active: dict[str, Capability], born: int
) -> tuple[dict[str, Capability], int]:
    """Some rubrics leave, some come; an id never returns."""
    kept = {i: c for i, c in active.items() if random.random() < 0.6}
    new = {f"r{born + n}": CAPABILITIES[random.integers(5)] for n in range(int(random.integers(0, 4)))}
    return kept | new, born + len(new)


def verdict_matrix(random: np.random.Generator, rubrics: int) -> Floats:
    return random.choice(np.array([0.0, 1.0, NAN]), (rubrics, 3), p=[0.3, 0.3, 0.4])


@given(SEEDS)
def test_ledger_equals_the_oracle(seed: int) -> None:
    random = np.random.default_rng(seed)
    decays = float(random.random()), float(random.random())
    ledger, oracle = Ledger(*decays), SlowLedger(*decays)
    active: dict[str, Capability] = {}
    born = version = 0
    for _ in range(14):
        version += int(random.integers(0, 4))
        if random.random() < 0.3:
            active, born = next_pool(random, active, born)
            ledger.keep_only(a_pool(active))
            oracle.keep_only(active)
        some = [i for i in active if random.random() < 0.8]
        tags = [d for d in TYPES if random.random() < 0.5]
        verdict_IJ = verdict_matrix(random, len(some))
        ledger.observe(tags, some, verdict_IJ, version)
        oracle.observe(tags, some, verdict_IJ, version)
        if random.random() < 0.2:
            ledger = Ledger.from_dict(json.loads(json.dumps(ledger.to_dict())))
        later = version + int(random.integers(0, 3))
        for task_type in TYPES:
            for capability in CAPABILITIES:
                close(ledger.cell(task_type, capability, later), oracle.cell(task_type, capability, later), 1e-12)
    stored = {(d, i) for d, i, *_ in ledger.to_dict()["tallies"]}
    assert stored == set(oracle.mass), "exactly the active rubrics that were observed"


@given(SEEDS)
def test_coverage_equals_the_oracle(seed: int) -> None:
    random = np.random.default_rng(seed)
    covered, oracle = CoverageMap(TASKS), SlowCoverage(TASKS)
    active: dict[str, Capability] = {}
    born = 0
    for _ in range(14):
        if random.random() < 0.3:
            active, born = next_pool(random, active, born)
            covered.keep_only(a_pool(active))
            oracle.keep_only(active)
        task_id = TASKS[random.integers(len(TASKS))]
        some = [i for i in active if random.random() < 0.8]
        valid_I, applicable_I = random.random(len(some)) < 0.5, random.random(len(some)) < 0.5
        had = {c for c in CAPABILITIES if oracle.applicable(c)[TASKS.index(task_id)]}
        first = covered.observe(task_id, some, valid_I, applicable_I)
        oracle.observe(
            task_id,
            {i for i, valid in zip(some, valid_I, strict=True) if valid},
            {i for i, applicable in zip(some, applicable_I, strict=True) if applicable},
        )
        has = {c for c in CAPABILITIES if oracle.applicable(c)[TASKS.index(task_id)]}
        assert set(first) == has - had
        if random.random() < 0.2:
            saved = json.loads(json.dumps(covered.to_dict()))
            covered = CoverageMap(TASKS)
            covered.restore(saved)
        close(covered.coverage(), oracle.coverage(), tolerance=1e-12)
        assert covered.outstanding().tolist() == oracle.outstanding()
        assert covered.attempts_X.tolist() == list(oracle.attempts.values())
        for capability in CAPABILITIES:
            assert covered.applicable(capability).tolist() == oracle.applicable(capability)


@given(SEEDS)
def test_contributions_of_a_capability_are_the_trajectories_that_speak_to_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    verdict_IJ = verdict_matrix(random, 6)
    capability_I = [CAPABILITIES[random.integers(3)] for _ in range(6)]
    passes_I, fails_I = contributions(verdict_IJ, capability_I)
    for capability in set(capability_I):
        rows = [i for i, c in enumerate(capability_I) if c == capability]
        speaking = int((~np.isnan(verdict_IJ[rows])).any(axis=0).sum())
        close((passes_I[rows] + fails_I[rows]).sum(), speaking, tolerance=1e-12)
    assert (passes_I >= 0).all()
    assert (fails_I >= 0).all()
