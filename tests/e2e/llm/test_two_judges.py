"""`arise judge check` with votes and with a second judge."""

import json
import re

from arise.testing import Action, Ask
from tests.e2e.llm.test_cli import run_check
from tests.e2e.llm.test_trust import wavering


def test_votes_and_a_second_judge_are_measured_side_by_side() -> None:
    doubtful, sound = wavering(0.15, seed=3), wavering(0.0, seed=3)

    def either(ask: Ask) -> Action:
        return (sound if ask.body["model"] == "judge-2" else doubtful)(ask)  # type: ignore[return-value]

    words = ("--votes", "3", "--repeat", "1", "--other-model", "judge-2")
    code, text = run_check(either, *words)
    assert code == 0, text
    assert "judge     A: judge-1/" in text
    assert "          B: judge-2/" in text
    assert "cases     A: 20 trajectories, 4 rubrics, 3 repeats" in text, "three votes need three repeats"
    assert "          B: 100.0 % agree with the majority of their repeats, flips 0.0 %" in text
    assert re.search(r"votes +A: 1: 100.0 % valid, [\d.]+ % right; 2: [\d.]+ % valid, [\d.]+ % right, gain ", text)
    assert re.search(r"both +[\d.]+ % of majorities are the same \(kappa .*\); where they differ, A has the", text)
    assert "so        A: not fit to judge: against the labels it is no better than chance; " in text
    assert "          B: not fit to judge: it says fail to everything" in text
    assert max(map(len, text.splitlines())) <= 135
    first, second = json.loads(run_check(either, *words, "--json")[1])
    assert first["flip_rate"] > second["flip_rate"] == 0.0
    assert [votes["count"] for votes in first["votes"]] == [1, 2, 3]
