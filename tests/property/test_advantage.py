"""Properties of Eqs. 15-17 on arbitrary groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from arise.method.advantage import advantage_parts, combined_advantages, normalized, rubric_advantages
from arise.method.reward import length_regularized
from tests.builders import NAN, Floats, close

Judged = tuple[Floats, Floats]
REWARDS = st.floats(-2, 2, allow_nan=False).map(lambda reward: round(reward, 3))


@st.composite
def groups(draw: st.DrawFn) -> Judged:
    size, rubrics = draw(st.integers(1, 8)), draw(st.integers(0, 5))
    reward_J = draw(hnp.arrays(np.float64, size, elements=REWARDS))
    verdict_IJ = draw(hnp.arrays(np.float64, (rubrics, size), elements=st.sampled_from([0.0, 1.0, NAN])))
    return reward_J, verdict_IJ


def by_the_book(reward_J: Floats, verdict_IJ: Floats, weight: float) -> list[float]:
    """Eqs. 15 and 16 as they are printed, one trajectory and one rubric at a time."""
    size = len(reward_J)
    mean = sum(reward_J) / size
    deviation = (sum((r - mean) ** 2 for r in reward_J) / size) ** 0.5
    task = [0.0 if len(set(reward_J)) == 1 else (r - mean) / (deviation + 1e-9) for r in reward_J]
    informative = []
    for row in verdict_IJ:
        given_verdicts = [y for y in row if not np.isnan(y)]
        if len(set(given_verdicts)) == 2:
            mu = sum(given_verdicts) / len(given_verdicts)
            sigma = (sum((y - mu) ** 2 for y in given_verdicts) / len(given_verdicts)) ** 0.5
            informative.append([None if np.isnan(y) else (y - mu) / (sigma + 1e-9) for y in row])
    combined = []
    for j in range(size):
        terms = [row[j] for row in informative if row[j] is not None]
        rubric = sum(term for term in terms if term is not None) / max(len(informative), 1)
        combined.append((1 - weight) * task[j] + weight * rubric if terms else task[j])
    return combined


@given(groups(), st.floats(0, 1))
def test_agrees_with_the_printed_equations(group: Judged, weight: float) -> None:
    close(combined_advantages(*group, weight), by_the_book(*group, weight), tolerance=1e-6)


@given(groups(), st.randoms(use_true_random=False))
def test_permuting_trajectories_permutes_advantages(group: Judged, random: np.random.Generator) -> None:
    reward_J, verdict_IJ = group
    order = list(range(len(reward_J)))
    random.shuffle(order)
    close(
        combined_advantages(reward_J[order], verdict_IJ[:, order]),
        combined_advantages(reward_J, verdict_IJ)[order],
        1e-9,
    )


@given(groups(), st.randoms(use_true_random=False))
def test_the_order_of_rubrics_does_not_matter(group: Judged, random: np.random.Generator) -> None:
    reward_J, verdict_IJ = group
    order = list(range(len(verdict_IJ)))
    random.shuffle(order)
    close(combined_advantages(reward_J, verdict_IJ[order]), combined_advantages(reward_J, verdict_IJ), 1e-9)


@given(groups())
def test_weight_zero_is_plain_group_normalisation(group: Judged) -> None:
    np.testing.assert_array_equal(combined_advantages(*group, rubric_weight=0.0), normalized(group[0]))


@given(groups())
def test_task_advantages_sum_to_zero_and_keep_the_order_of_rewards(group: Judged) -> None:
    advantage_J = normalized(group[0])
    assert abs(advantage_J.sum()) < 1e-6
    assert (np.diff(advantage_J[np.argsort(group[0], kind="stable")]) >= 0).all()


@given(groups(), st.data())
def test_removing_a_verdict_changes_no_task_term_and_only_its_own_rubric(group: Judged, data: st.DataObject) -> None:
    reward_J, verdict_IJ = group
    if not len(verdict_IJ):
        return
    i = data.draw(st.integers(0, len(verdict_IJ) - 1))
    j = data.draw(st.integers(0, len(reward_J) - 1))
    without_IJ = verdict_IJ.copy()
    without_IJ[i, j] = NAN
    before, after = advantage_parts(reward_J, verdict_IJ), advantage_parts(reward_J, without_IJ)
    np.testing.assert_array_equal(before[0], after[0])
    rubric_before, rubric_after = rubric_advantages(verdict_IJ)[0], rubric_advantages(without_IJ)[0]
    others = [row for row in range(len(verdict_IJ)) if row != i]
    np.testing.assert_array_equal(rubric_before[others], rubric_after[others])
    assert rubric_after[i, j] == 0.0
    close(combined_advantages(reward_J, without_IJ), by_the_book(reward_J, without_IJ, 0.3), tolerance=1e-6)


@given(groups())
def test_a_group_without_any_verdict_is_a_task_only_group(group: Judged) -> None:
    reward_J, verdict_IJ = group
    nothing_IJ = np.full_like(verdict_IJ, NAN)
    np.testing.assert_array_equal(combined_advantages(reward_J, nothing_IJ), normalized(reward_J))


@given(groups(), st.floats(0.01, 100), st.floats(-5, 5))
def test_task_advantages_do_not_depend_on_scale_or_offset(group: Judged, scale: float, offset: float) -> None:
    reward_J = group[0]
    if np.ptp(reward_J) > 1e-2:
        close(normalized(reward_J * scale + offset), normalized(reward_J), tolerance=1e-4)


@given(
    hnp.arrays(np.float64, 6, elements=REWARDS),
    hnp.arrays(np.int64, 6, elements=st.integers(0, 40_000)),
    st.floats(0, 1),
)
def test_length_regularisation_stays_within_its_strength(raw_J: Floats, lengths_J: Floats, strength: float) -> None:
    reward_J = length_regularized(raw_J, lengths_J, strength)
    positive_J = raw_J > 0
    np.testing.assert_array_equal(reward_J[~positive_J], raw_J[~positive_J])
    factor_J = reward_J[positive_J] / raw_J[positive_J]
    assert ((factor_J >= 1 - strength - 1e-9) & (factor_J <= 1 + strength + 1e-9)).all()
    active = positive_J.any() and not positive_J.all() and lengths_J.max() > 16_384 and np.ptp(lengths_J) > 0
    if not active:
        np.testing.assert_array_equal(reward_J, raw_J)
    shorter_first = np.argsort(lengths_J[positive_J], kind="stable")
    assert (np.diff(factor_J[shorter_first]) <= 1e-12).all()
