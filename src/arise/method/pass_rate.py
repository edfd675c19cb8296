"""Verdicts of judged groups as arrays, and the pass rate of a rubric over a window of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from arise.method.arrays import Floats
from arise.types import EvidenceRecord, Group, Tally, Verdict

_NOT_APPLICABLE = 2.0
_CODE: Mapping[Verdict | None, float] = {
    Verdict.PASS: 1.0,
    Verdict.FAIL: 0.0,
    Verdict.NOT_APPLICABLE: _NOT_APPLICABLE,
    None: np.nan,
}


def pass_rate(tally: Tally) -> float | None:
    """Eq. 2 — p^_i, the share of passes among the applicable verdicts; None where there were none."""
    passes, evaluations = tally
    if not 0 <= passes <= evaluations:
        raise ValueError(f"tally {passes} of {evaluations}: passes must be between 0 and evaluations")
    # Integer counts and one division reproduce a threshold such as 0.3 exactly; a running mean does not.
    return passes / evaluations if evaluations else None


def verdict_arrays(group: Group, rubric_ids: Sequence[str]) -> tuple[Floats, NDArray[np.bool_]]:
    """y_ij with nan for not applicable or absent, and which are valid: not applicable is, absent is not."""
    nothing: Mapping[str, Verdict] = {}
    given_J = [rollout.judgment.verdicts if rollout.judgment else nothing for rollout in group.rollouts]
    shape = (len(given_J), len(rubric_ids))
    found = chain.from_iterable(map(given.get, rubric_ids) for given in given_J)
    code_IJ = np.fromiter(map(_CODE.__getitem__, found), np.float64, count=shape[0] * shape[1]).reshape(shape).T
    valid_IJ = code_IJ == code_IJ
    return np.where(code_IJ == _NOT_APPLICABLE, np.nan, code_IJ), valid_IJ


def window_tallies(
    records: Iterable[EvidenceRecord], rubric_ids: Iterable[str], *, unguided: bool = False
) -> dict[str, Tally]:
    """Count passes and N_i of Eq. 2 for each rubric, from every valid applicable verdict of the window.

    `unguided` counts only the verdicts of rollouts whose prompt did not contain the rubric's own skill.
    """
    passes = dict.fromkeys(rubric_ids, 0)
    evaluations = dict.fromkeys(passes, 0)
    for record in records:
        left_out = {skill.rubric_id for skill in record.view.shown_skills} if unguided else ()
        for rubric_id, verdict in record.verdicts:
            if rubric_id in evaluations and rubric_id not in left_out and verdict is not Verdict.NOT_APPLICABLE:
                evaluations[rubric_id] += 1
                passes[rubric_id] += verdict is Verdict.PASS
    return {rubric_id: Tally(passes[rubric_id], evaluations[rubric_id]) for rubric_id in passes}


def unguided_success(records: Sequence[EvidenceRecord], task_types: Sequence[Collection[str]]) -> tuple[Tally, ...]:
    """Count, for each set of task types, the verified successes of rollouts of these types without any skill shown."""
    seen = [
        (set(record.view.task_types), record.outcome.success)
        for record in records
        if record.outcome is not None and not record.view.shown_skills
    ]
    tallies = []
    for types in task_types:
        outcomes = [success for own, success in seen if not own.isdisjoint(types)]
        tallies.append(Tally(sum(outcomes), len(outcomes)))
    return tuple(tallies)
