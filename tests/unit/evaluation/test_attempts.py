"""Where the attempts of an evaluation are kept: always within the run's own folder."""

from pathlib import Path

import pytest

from arise.compose.evaluations import PolicyChoice
from arise.config.llm import EndpointConfig
from arise.errors import AriseError, Exit
from arise.evaluation.attempts import RAW_FOLDER, raw_file, read_raw, require_label, require_own_label, write_raw


@pytest.mark.parametrize("label", ["before", "k00010", "retention/k00005", "gpt-4.1", "a_b"])
def test_attempts_are_kept_under_their_name(tmp_path: Path, label: str) -> None:
    write_raw(tmp_path, label, [{"task_id": "t"}])
    assert read_raw(tmp_path, label) == [{"task_id": "t"}]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / RAW_FOLDER / f"{label}.jsonl"]


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
def test_other_names_are_free(label: str) -> None:
    require_own_label(label)
