"""golden.md section 10, and the four lifecycles of the paper's appendix (Tables 7-10) replayed update by update."""

import numpy as np
import pytest

from arise.method.lifecycle import evolve, fate
from arise.types import Capability, Fate, Pool, PoolEvent, Rewrite, Tally
from tests.builders import a_pair, a_proposal


@pytest.mark.parametrize(
    ("passes", "evaluations", "active", "expected"),
    [
        (3, 10, False, Fate.ACTIVATE),
        (3, 10, True, Fate.REFINE),
        (31, 100, True, Fate.HIDE),
        (31, 100, False, Fate.KEEP),
        (9, 10, False, Fate.RETIRE),
        (9, 10, True, Fate.RETIRE),
        (899, 1000, True, Fate.HIDE),
        (63, 70, False, Fate.RETIRE),
        (27, 90, False, Fate.ACTIVATE),
        (0, 5, True, Fate.REFINE),
        (0, 0, True, Fate.KEEP),
        (0, 0, False, Fate.KEEP),
    ],
)
def test_decisions(passes: int, evaluations: int, active: bool, expected: Fate) -> None:
    assert fate(active, passes, evaluations) is expected


def test_single_precision_would_miss_the_threshold() -> None:
    assert float(np.float32(27) / np.float32(90)) > 0.3
    assert fate(False, 27, 90) is Fate.ACTIVATE


def test_a_refined_skill_stays_active_with_the_next_revision() -> None:
    pool = Pool((a_pair("r001", active=True),), 1, 1)
    evolution = evolve(pool, {"r001": Tally(3, 10)}, iteration=9, rewrites={"r001": Rewrite("better")})
    skill = evolution.pool.find("r001").skill
    assert (skill.active, skill.revision, skill.text) == (True, 1, "better")


# Counts whose rate prints as the published percentage. The paper's step 20 is iteration 19.
PUBLISHED: dict[str, dict[int, tuple[Tally, str, Fate, bool]]] = {
    "r001": {
        20: (Tally(13, 47), "27.7", Fate.ACTIVATE, True),
        30: (Tally(12, 35), "34.3", Fate.HIDE, False),
        100: (Tally(29, 43), "67.4", Fate.KEEP, False),
        150: (Tally(33, 50), "66.0", Fate.KEEP, False),
    },
    "r002": {
        50: (Tally(9, 35), "25.7", Fate.ACTIVATE, True),
        60: (Tally(16, 37), "43.2", Fate.HIDE, False),
        100: (Tally(35, 36), "97.2", Fate.RETIRE, False),
    },
    "r003": {
        90: (Tally(40, 59), "67.8", Fate.KEEP, False),
        120: (Tally(43, 48), "89.6", Fate.KEEP, False),
        150: (Tally(30, 37), "81.1", Fate.KEEP, False),
    },
    "r004": {140: (Tally(55, 57), "96.5", Fate.RETIRE, False)},
}
CREATED = {
    10: ("r001", Capability.VERIFICATION),
    40: ("r002", Capability.VERIFICATION),
    80: ("r003", Capability.DEBUGGING),
    130: ("r004", Capability.EFFICIENCY),
}


@pytest.mark.parametrize("rubric_id", PUBLISHED)
def test_counts_print_as_published(rubric_id: str) -> None:
    for tally, printed, _, _ in PUBLISHED[rubric_id].values():
        assert f"{100 * tally.passes / tally.evaluations:.1f}" == printed


def test_published_lifecycles() -> None:
    pool, events = Pool(), list[PoolEvent]()
    for step in range(10, 151, 10):
        observed = {i: trace[step] for i, trace in PUBLISHED.items() if step in trace}
        for i, (tally, _, expected, _) in observed.items():
            assert fate(pool.find(i).skill.active, *tally) is expected
        proposals = [a_proposal(*CREATED[step])] if step in CREATED else []
        tallies = {i: tally for i, (tally, _, _, _) in observed.items()}
        evolution = evolve(pool, tallies, iteration=step - 1, proposals=proposals)
        pool, events = evolution.pool, events + list(evolution.events)
        for i, (_, _, expected, active) in observed.items():
            if expected is Fate.RETIRE:
                assert i not in [rubric.id for rubric in pool.rubrics]
            else:
                assert pool.find(i).skill.active is active
        if step in CREATED:
            assert not pool.find(CREATED[step][0]).skill.active
    assert [(event.iteration + 1, event.rubric_id, event.kind) for event in events] == [
        (10, "r001", "born"),
        (20, "r001", "activate"),
        (30, "r001", "hide"),
        (40, "r002", "born"),
        (50, "r002", "activate"),
        (60, "r002", "hide"),
        (80, "r003", "born"),
        (100, "r002", "retire"),
        (130, "r004", "born"),
        (140, "r004", "retire"),
    ]
    assert [rubric.id for rubric in pool.rubrics] == ["r001", "r003"]
    assert [pair.skill.revision for pair in pool.pairs] == [0, 0], "the skill text never changed"
