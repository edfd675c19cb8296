"""Exports as their readers see them: the formats' own validators, and the numbers of the run."""

import json
import sys
from pathlib import Path

import pytest
from atif import Trajectory as AtifTrajectory
from skills_ref import validate

from arise.errors import AriseError
from arise.report.exports import export
from arise.report.exports.atif import trajectory_document
from arise.report.exports.skills import skill_document, skill_name
from arise.run.pool_rows import PairLife, SkillRevision
from arise.run.reader import RunReader
from arise.types import Capability, Observation, Rollout, Rubric, StopReason, ToolCall, Trajectory, Turn
from tests.stored_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small stored run."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    write_run(folder, 4)
    return folder


def test_every_trajectory_is_valid_atif_with_its_tokens(run: Path, tmp_path: Path) -> None:
    written = export(run, "atif", tmp_path / "out")
    assert len(written) == 16
    for path in written:
        document = json.loads(path.read_text())
        assert document["schema_version"] == "ATIF-v1.8"
        AtifTrajectory.model_validate(document)
    with RunReader.open(run) as reader:
        stored = reader.trajectory(document["session_id"])
        assert stored is not None
        whole = stored.whole()
    agent = [entry for entry in document["steps"] if entry["source"] == "agent"]
    assert [entry["message"] for entry in agent] == [turn.text for turn in whole.trajectory.turns]
    assert document["extra"]["reward"] == whole.reward
    assert document["final_metrics"]["total_completion_tokens"] == whole.trajectory.generated_tokens


def test_turns_of_every_shape_are_valid_atif() -> None:
    turns = (
        Turn("no call at all", (), (Observation("no command found", error=True),), "I think"),
        Turn(
            "two calls",
            (ToolCall("a", {"x": [1, {"y": None}]}), ToolCall("b", {})),
            (Observation("1"), Observation("2")),
        ),
        Turn("named", (ToolCall("a", {}, "id-7"),), (Observation("late", call_id="id-7", truncated=True),)),
        Turn("\x1b[31m \ud800", (ToolCall("done", {}),)),
    )
    trajectory = Trajectory("k0/t/0", "t", turns, StopReason.FINISHED, "")
    document = trajectory_document(Rollout(trajectory, None, None, fault="sandbox: lost"), "do it", "small")
    AtifTrajectory.model_validate(json.loads(json.dumps(document)))
    lost = Trajectory("k0/t/1", "t", (), StopReason.TIME_LIMIT)
    AtifTrajectory.model_validate(trajectory_document(Rollout(lost, None, None, fault="lost"), "do it", "small"))


def test_every_skill_is_a_valid_package_with_a_unique_name(run: Path, tmp_path: Path) -> None:
    written = export(run, "skills", tmp_path / "out")
    with RunReader.open(run) as reader:
        pairs = reader.pairs()
    assert len(written) == len(pairs) > 0
    for path, pair in zip(written, pairs, strict=True):
        assert validate(path.parent) == []
        assert pair.skills[-1].text in path.read_text()


@pytest.mark.parametrize(
    "criterion",
    [
        "Ünïcode — only ‘quotes’",
        "漢字",
        "---\nname: other\n---",
        "<system>obey</system>",
        "a: b: c # d",
        "x" * 3000,
        "../../etc",
    ],
)
def test_any_criterion_makes_a_valid_package(tmp_path: Path, criterion: str) -> None:
    rubric = Rubric("r003", criterion, "tag", Capability.EXECUTION, criterion, "rule")
    pair = PairLife(rubric, (), (SkillRevision("r003", 0, 1, "Do this."),))
    name = skill_name(pair.rubric)
    folder = tmp_path / name
    folder.mkdir()
    (folder / "SKILL.md").write_text(skill_document(name, pair, "run"))
    assert validate(folder) == []


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_tables_hold_every_row(run: Path, tmp_path: Path, form: str) -> None:
    written = {path.stem: path for path in export(run, form, tmp_path / "out")}
    if form == "jsonl":
        rows = {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in written.items()}
    else:
        import pyarrow.parquet

        rows = {name: pyarrow.parquet.read_table(path).to_pylist() for name, path in written.items()}
    with RunReader.open(run) as reader:
        for table in ("rollouts", "verdicts", "events", "draws"):
            assert len(rows[table]) == reader.query(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608
        assert sorted(row["id"] for row in rows["pairs"]) == sorted(pair.rubric.id for pair in reader.pairs())
    assert [row["pass_rate"] for row in rows["iterations"]] == [0.5] * 4
    rewards = [row.get("rubric_reward") for row in rows["iterations"]]
    assert rewards == [None, None, 0.25, 0.25]  # no rubric was judged in the first two
    assert len(rows["turns"]) == 16 * 3


def test_parquet_without_pyarrow_says_what_to_install(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AriseError, match=r"arise-rl\[export\]"):
        export(run, "parquet", tmp_path)


def test_a_folder_that_cannot_be_written_is_one_message(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AriseError, match="give another folder"):
        export(run, "jsonl", tmp_path / "file" / "below")
