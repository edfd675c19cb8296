"""Where the attempts of an evaluation are kept: always within the run's own folder."""

import json
from pathlib import Path

import pytest

from arise.compose.evaluations import PolicyChoice
from arise.config.llm import EndpointConfig
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import RAW_FOLDER, raw_file, read_raw, require_label, require_own_label, write_raw
from arise.types import StopReason
from arise.types.codec import to_json
from tests.builders import PASS, an_attempt


@pytest.mark.parametrize("label", ["before", "k00010", "retention/k00005", "gpt-4.1", "a_b"])
def test_attempts_are_kept_under_their_name(tmp_path: Path, label: str) -> None:
    attempts = [an_attempt("t", verdicts={"r1": PASS}), an_attempt("t", 1, success=None, fault="sandbox: lost")]
    write_raw(tmp_path, label, attempts)
    assert to_json(read_raw(tmp_path, label)) == to_json(attempts)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / RAW_FOLDER / f"{label}.jsonl"]


OLD_LINE = (
    '{"label": "before", "task_id": "x/t", "attempt": 0, "iteration": 0, "domain": "data", "task_type": "csv", '
    '"success": true, "reward": 1.0, "stop": "finished", "fault": "", "skill_bytes": 0, "verdicts": {"r1": "pass"}, '
    '"rollout": {"trajectory": {"id": "eval/before/x/t/0", "task_id": "x/t", "turns": [{"text": "$ submit", "calls": '
    '[{"name": "bash", "arguments": {"command": "submit"}, "id": ""}], "observations": [], "reasoning": ""}], '
    '"stop": "finished", "system_prompt": "s", "rows": [], "shown_skills": [], "left_out": []}, "reward": 1.0, '
    '"success": true, "judgment": null, "fault": "", "reason": "", "verifier_output": ""}}\n'
)
"""A line as version 0.1 wrote it."""


def test_a_line_of_version_0_1_is_read_and_keeps_its_fields(tmp_path: Path) -> None:
    path = raw_file(tmp_path, "before")
    path.parent.mkdir()
    path.write_text(OLD_LINE)
    (attempt,) = read_raw(tmp_path, "before")
    assert (attempt.task_id, attempt.verdicts, attempt.stop) == ("x/t", {"r1": PASS}, StopReason.FINISHED)
    write_raw(tmp_path, "before", [attempt])
    assert json.loads(path.read_text()) == json.loads(OLD_LINE) | {"instruction": ""}


@pytest.mark.parametrize(
    "label",
    ["", "..", "../out", "a/../../out", "/etc/passwd", "a//b", "a/", ".hidden", "a/.hidden", "a b", "a\n", "a\0b",
     "a\\b", "-x", "ü", "a" * 101],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, label: str) -> None:
    for use in (lambda: raw_file(tmp_path, label), lambda: write_raw(tmp_path, label, [])):
        with pytest.raises(AriseError, match="cannot be the name of an evaluation") as caught:
            use()
        assert caught.value.exit_code is Exit.CONFIG
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", ["org/model-4.1", "../../model", "...", "modèle", "m" * 300])
def test_a_model_of_any_name_has_a_label(model: str) -> None:
    require_label(PolicyChoice(endpoint=EndpointConfig(model=model)).label)


@pytest.mark.parametrize("label", ["before", "after", "k00005", "retention/k00020", "guidance/base", "../out"])
def test_an_evaluation_of_the_runs_own_is_never_replaced(label: str) -> None:
    with pytest.raises(AriseError) as caught:
        require_own_label(label)
    assert caught.value.exit_code is Exit.CONFIG


@pytest.mark.parametrize("label", ["base", "eval-k00005", "after-2", "kimi", "gpt-4.1"])
def test_other_labels_are_allowed(label: str) -> None:
    require_own_label(label)
