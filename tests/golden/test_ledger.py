"""golden.md section 5: contributions of a group, and the two-scale decay."""

import numpy as np

from arise.method.ledger import Ledger, contributions
from arise.types import Capability
from tests.builders import NAN, a_pool, close

V, X = Capability.VERIFICATION, Capability.EXECUTION
GROUP: list[list[float]] = [[1, NAN], [0, 0], [1, 1], [NAN, 0]]
RUBRICS = {"v1": V, "v2": V, "v3": V, "x1": X}


def test_contributions_of_a_group() -> None:
    passes_I, fails_I = contributions(GROUP, list(RUBRICS.values()))
    close(passes_I, [1 / 3, 0, 5 / 6, 0])
    close(fails_I, [0, 5 / 6, 0, 1])


def test_every_tag_gets_the_full_contribution_and_retirement_does_not_renormalise() -> None:
    ledger = Ledger()
    ledger.keep_only(a_pool(RUBRICS))
    ledger.observe(["d1", "d2"], list(RUBRICS), GROUP, version=0)
    for task_type in ("d1", "d2"):
        close(ledger.cell(task_type, V, 0), (7 / 6, 5 / 6))
        close(ledger.cell(task_type, X, 0), (0, 1))
    ledger.keep_only(a_pool({i: c for i, c in RUBRICS.items() if i != "v3"}))
    close(ledger.cell("d1", V, 0), (1 / 3, 5 / 6))


class Trace:
    """One (d, i) whose group contributions are chosen freely, by the number of applicable peers of each trajectory."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.ledger.keep_only(a_pool({"i": V, "peer1": V, "peer2": V, "peer3": V}))

    def observe(self, passes: float, fails: float, version: int) -> None:
        """Whole units are trajectories of the rubric alone, fractions are shared with peers of the same capability."""
        columns = []
        for amount, verdict in ((passes, 1.0), (fails, 0.0)):
            columns += [[verdict, NAN, NAN, NAN]] * int(amount)
            if amount % 1 == 0.5:
                columns.append([verdict, 1.0, NAN, NAN])
            if amount % 1 == 0.25:
                columns.append([verdict, 1.0, 1.0, 1.0])
        self.ledger.observe(["d"], ["i", "peer1", "peer2", "peer3"], np.array(columns).T, version)

    def query(self, version: int) -> tuple[float, float]:
        """What the rubric alone counts, read from a copy that has forgotten its peers."""
        alone = Ledger.from_dict(self.ledger.to_dict())
        alone.keep_only(a_pool({"i": V}))
        return alone.cell("d", V, version)


def test_decay_trace() -> None:
    trace = Trace()
    trace.observe(3.5, 4.5, 0)
    close(trace.query(0), (3.5, 4.5))
    trace.observe(1, 1, 0)
    close(trace.query(0), (4.5, 5.5))
    close(trace.query(3), (4.4865134955, 5.4835164945))
    trace.observe(2, 6, 4)
    close(trace.query(4), (2.8973026991, 7.0967032989))
    trace.observe(0.5, 0.25, 4)
    close(trace.query(4), (3.3973026991, 7.3467032989))
    close(trace.query(5), (3.3939053964009, 7.3393565956011))
    trace.ledger.observe(["d"], ["i"], [[NAN] * 8], 6)
    close(trace.query(6), (3.3905114910044991, 7.3320172390054989))
    trace.observe(8, 0, 7)
    close(trace.query(7), (8.67810229820089982, 1.46640344780109978))
    close(trace.query(8), (8.66942419590269892, 1.46493704435329868))


def test_queries_do_not_change_what_is_stored() -> None:
    trace = Trace()
    trace.observe(4, 4, 0)
    before = trace.ledger.to_dict()
    trace.ledger.cell("d", V, 50)
    assert trace.ledger.to_dict() == before


def test_lazy_decay_is_the_per_version_rule_of_vade() -> None:
    passes, fails = 4.5, 5.5
    for _ in range(3):
        passes, fails = passes * 0.999, fails * 0.999
    close((passes * 0.2 + 2, fails * 0.2 + 6), (2.8973026991, 7.0967032989))
