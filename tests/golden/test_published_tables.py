"""golden.md section 11: Tables 1, 4, 6 and 11 of the paper, from integer counts to the printed digit."""

import numpy as np
import pytest

from arise.evaluation.metrics import domain_pass_rates, mean_and_deviation, pass_rate, pooled_pass_rate
from tests.builders import close

SIZES = {"SE": 16, "NS": 14, "OW": 14, "IP": 14, "FE": 9, "MR": 8, "CS": 7, "MC": 5}
TASKS, ATTEMPTS = 87, 3

# Table 1: passes per domain of 3 x size, the printed domain rates, the printed overall rate, Terminal-Bench of 267.
MAIN: dict[str, tuple[list[int], str, str, int, str]] = {
    "Base": ([7, 17, 11, 10, 5, 7, 3, 1], "14.6 40.5 26.2 23.8 18.5 29.2 14.3 6.7", "23.4", 111, "41.6"),
    "VADE": ([12, 23, 16, 13, 9, 12, 5, 11], "25.0 54.8 38.1 31.0 33.3 50.0 23.8 73.3", "38.7", 117, "43.8"),
    "OnlineRubrics": ([14, 27, 16, 13, 10, 8, 6, 11], "29.2 64.3 38.1 31.0 37.0 33.3 28.6 73.3", "40.2", 123, "46.1"),
    "RuscaRL": ([16, 24, 18, 11, 11, 7, 5, 11], "33.3 57.1 42.9 26.2 40.7 29.2 23.8 73.3", "39.5", 120, "44.9"),
    "ARISE": ([20, 25, 22, 16, 11, 8, 5, 12], "41.7 59.5 52.4 38.1 40.7 33.3 23.8 80.0", "45.6", 135, "50.6"),
}

# Table 1, the other models that the paper evaluated itself: domain rates and overall, counts implied by the sizes.
OTHERS = {
    "GPT-5.4 Mini": ("27.1 35.7 45.2 21.4 25.9 41.7 33.3 66.7", "34.5"),
    "Claude Opus-4.7": ("58.3 83.3 54.8 54.8 44.4 50.0 57.1 53.3", "58.6"),
    "MiniMax-M2.7": ("14.6 59.5 28.6 19.0 33.3 29.2 23.8 13.3", "28.7"),
    "GLM-5.1": ("41.7 76.2 69.0 45.2 33.3 37.5 47.6 80.0", "53.6"),
    "Kimi-K2.6": ("39.6 76.2 57.1 50.0 44.4 66.7 47.6 66.7", "55.2"),
    "DeepSeek-V4-Pro": ("37.5 73.8 52.4 42.9 29.6 66.7 42.9 80.0", "51.3"),
    "DeepSeek-V4-Pro-0813": ("62.5 81.0 64.3 47.6 48.1 50.0 42.9 60.0", "59.0"),
    "Qwen3.5-122B-A10B": ("18.8 40.5 23.8 16.7 22.2 33.3 19.0 13.3", "24.1"),
    "Qwen3.5-397B-A17B": ("16.7 45.2 38.1 31.0 22.2 37.5 23.8 20.0", "30.3"),
}

# Table 6: the three printed run rates, and the printed mean and deviation.
STABILITY = {
    "GPT-5.4 Mini": ("35.6 33.3 34.5", "34.5", "1.1"),
    "Claude Opus-4.7": ("59.8 57.5 58.6", "58.6", "1.1"),
    "MiniMax-M2.7": ("28.7 26.4 31.0", "28.7", "2.3"),
    "GLM-5.1": ("52.9 50.6 57.5", "53.6", "3.5"),
    "Kimi-K2.6": ("57.5 51.7 56.3", "55.2", "3.0"),
    "DeepSeek-V4-Pro": ("50.6 51.7 51.7", "51.3", "0.7"),
    "DeepSeek-V4-Pro-0813": ("59.8 57.5 59.8", "59.0", "1.3"),
    "Qwen3.5-122B-A10B": ("21.8 23.0 27.6", "24.1", "3.0"),
    "Qwen3.5-397B-A17B": ("32.2 29.9 28.7", "30.3", "1.8"),
    "Base": ("21.8 24.1 24.1", "23.4", "1.3"),
    "VADE": ("41.4 36.8 37.9", "38.7", "2.4"),
    "OnlineRubrics": ("37.9 42.5 40.2", "40.2", "2.3"),
    "RuscaRL": ("42.5 34.5 41.4", "39.5", "4.4"),
    "ARISE": ("46.0 44.8 46.0", "45.6", "0.7"),
}


def successes(passes: list[int]) -> tuple[np.ndarray, list[str]]:
    """A tasks x attempts array with so many successes in each domain, and the domain of each task."""
    blocks, domains = [], []
    for (domain, size), count in zip(SIZES.items(), passes, strict=True):
        block = np.zeros(size * ATTEMPTS)
        block[:count] = 1
        blocks.append(block.reshape(size, ATTEMPTS))
        domains += [domain] * size
    return np.concatenate(blocks), domains


@pytest.mark.parametrize("model", MAIN)
def test_main_results(model: str) -> None:
    passes, printed, overall, terminal, terminal_printed = MAIN[model]
    success_NM, domain_N = successes(passes)
    rates = domain_pass_rates(success_NM, domain_N)
    assert list(rates) == list(SIZES)
    assert " ".join(f"{rate:.1f}" for rate in rates.values()) == printed
    assert success_NM.shape == (TASKS, ATTEMPTS)
    assert f"{pass_rate(success_NM):.1f}" == overall
    assert f"{pooled_pass_rate(terminal, 267):.1f}" == terminal_printed
    assert terminal % 3 == 0, "the Terminal-Bench column looks like a single pass over 89 tasks"


def test_the_overall_rate_pools_tasks_instead_of_averaging_domains() -> None:
    success_NM, domain_N = successes(MAIN["ARISE"][0])
    unweighted = np.mean(list(domain_pass_rates(success_NM, domain_N).values()))
    assert pass_rate(success_NM) == pytest.approx(45.5939, abs=1e-4)
    assert abs(unweighted - pass_rate(success_NM)) > 0.5


@pytest.mark.parametrize("model", OTHERS)
def test_other_models_of_the_main_table(model: str) -> None:
    printed, overall = OTHERS[model]
    passes = [
        round(float(rate) * ATTEMPTS * size / 100) for rate, size in zip(printed.split(), SIZES.values(), strict=True)
    ]
    success_NM, domain_N = successes(passes)
    assert " ".join(f"{rate:.1f}" for rate in domain_pass_rates(success_NM, domain_N).values()) == printed
    assert f"{pass_rate(success_NM):.1f}" == overall


@pytest.mark.parametrize("model", STABILITY)
def test_stability(model: str) -> None:
    runs, mean, deviation = STABILITY[model]
    rates = [pooled_pass_rate(round(float(run) * TASKS / 100), TASKS) for run in runs.split()]
    assert " ".join(f"{rate:.1f}" for rate in rates) == runs
    assert tuple(f"{value:.1f}" for value in mean_and_deviation(rates)) == (mean, deviation)


def test_deviation_from_rounded_rates_would_print_another_digit() -> None:
    assert mean_and_deviation([42.5, 34.5, 41.4])[1] == pytest.approx(4.3363, abs=1e-4)
    assert mean_and_deviation([100 * passes / 87 for passes in (37, 30, 36)])[1] == pytest.approx(4.3517, abs=1e-4)
    close(mean_and_deviation([46.0, 44.8, 46.0]), (45.6, 0.6928), tolerance=1e-4)


def test_the_published_corpus_adds_up() -> None:
    tasks = [543, 415, 294, 95, 88, 77, 69, 55, 48, 44]
    printed = "31.4 24.0 17.0 5.5 5.1 4.5 4.0 3.2 2.8 2.5"
    assert sum(tasks) == 1728
    assert " ".join(f"{pooled_pass_rate(count, 1728):.1f}" for count in tasks) == printed


def test_training_time() -> None:
    assert pytest.approx(4.13, abs=0.01) == 100 * (17.14 / 16.46 - 1)
    assert pytest.approx(65.29, abs=0.01) == 100 * (1 - 50 * 17.14 / (150 * 16.46))
    assert pytest.approx(42.9, abs=0.06) == 150 * 17.14 / 60
