"""docs/paper.md, "What is not here, what differs": every row has a test here that fails when it is no longer true."""

import ast
import re
from collections.abc import Iterator
from typing import Any, get_args

from arise.config import AgentConfig, Config
from arise.config.evaluation import EvaluationConfig
from arise.config.file import differences, load_config
from arise.config.schema import TasksChoice
from arise.engines.local.pretrained import PULLABLE
from arise.report.figures.draw import FIGURES
from tests.architecture.test_paper_map import ROOT, code, table

ROWS = table("What is not here, what differs")
SHIPPED = {path.name: load_config(path) for path in sorted((ROOT / "configs").glob("*.toml"))}
FOR_GPUS = {"paper.toml", "one-node.toml", "lora-one-gpu.toml"}
"""Written for machines that we do not have; nothing published was measured with them."""
RUN_HERE = {name: config for name, config in SHIPPED.items() if name not in FOR_GPUS}
README = (ROOT / "README.md").read_text(encoding="utf-8")


def classes(*methods: str) -> set[str]:
    """Every class of the package that has all these methods, but for protocols and fakes."""
    found = set()
    for path in sorted((ROOT / "src" / "arise").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not _is_protocol(node) and set(methods) <= set(_methods(node)):
                found.add(node.name)
    return found


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def _methods(node: ast.ClassDef) -> Iterator[str]:
    yield from (item.name for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))


def kinds(choice: Any) -> set[str]:
    return {section.model_fields["kind"].default for section in get_args(get_args(choice)[0])}


def test_every_row_has_its_test_and_every_test_its_row() -> None:
    here = {name for name, found in globals().items() if name.startswith("test_") and callable(found)}
    named = [code(row["Test"]) for row in ROWS]
    assert len(set(named)) == len(named)
    assert set(named) == here - {"test_every_row_has_its_test_and_every_test_its_row"}


def test_no_large_model_was_trained_here() -> None:
    models = {config.model.kind if config.model.kind == "small" else config.model.name for config in RUN_HERE.values()}
    assert models == {"small", "smollm2-135m"}
    assert set(SHIPPED) >= FOR_GPUS
    assert set(PULLABLE) == {"smollm2-135m"}


def test_the_default_engine_is_in_this_process() -> None:
    assert classes("train_step", "publish", "load_state") == {"LocalEngine", "RemoteEngine"}
    assert Config().policy.kind == "embedded"
    assert Config().train.max_staleness == 0


def test_the_default_judge_is_made_of_rules() -> None:
    assert Config().judge.kind == "offline"
    assert {name: config.judge.kind for name, config in RUN_HERE.items() if config.judge.kind == "model"} == {}


def test_two_built_in_agents() -> None:
    """Others make attempts too: the same agents behind an endpoint, a script, an example, wrappers."""
    own = {"ShellAgent", "EndpointAgent", "ToolAgent", "ToolEndpointAgent", "ScriptedWorker", "MyAgent", "HarnessAgent"}
    own |= {"RemoteHarnessAgent"}
    wrappers = {"BarePromptRows", "RedactingAgent", "Collector"}
    assert classes("attempt") == own | wrappers


def test_two_kinds_of_tasks() -> None:
    assert kinds(TasksChoice) == {"world", "harbor"}


def test_kinds_of_sandboxes() -> None:
    found = classes("open", "close", "__aenter__")
    assert found == {"BubblewrapPool", "ChosenPool", "ContainerPool", "HarborPool", "OverlayPool"}


def test_shipped_configurations_guide_half_of_a_group() -> None:
    assert Config().guidance.kind == "skills"
    shares = {name: config.guidance.share for name, config in RUN_HERE.items() if config.guidance.kind == "skills"}
    assert set(shares.values()) == {0.5}
    assert Config.model_validate({"guidance": {"kind": "skills"}}).guidance.model_dump()["share"] == 1.0


def test_what_shipped_configurations_change() -> None:
    """Sizes, learning rate, precision and windows; no value of the method's own but the length threshold."""
    allowed = {
        "train": {"iterations", "tasks_per_iteration", "group_size"},
        "optimizer": {"learning_rate", "warmup_updates", "precision"},
        "credit": {"kind", "length_threshold"},
        "pool": {"update_every", "min_evaluations"},
        "evidence": {"window"},
        "guidance": {"kind", "share"},
    }
    of_the_method = {"loss", "sampler", "criteria", "watch", *allowed}
    for name, config in RUN_HERE.items():
        for section, changed in differences(config).items():
            if section in of_the_method:
                assert set(changed) <= allowed.get(section, set()), (name, section, changed)
    papers = {section: set(changed) for section, changed in differences(SHIPPED["paper.toml"]).items()}
    assert {section: papers[section] for section in of_the_method & set(papers)} == {"train": {"max_staleness"}}


def test_no_top_k_and_no_seconds_per_attempt() -> None:
    assert not {field for field in EvaluationConfig.model_fields if "top_k" in field or "seconds" in field}
    assert {field for field in AgentConfig.model_fields if "second" in field} == {"command_seconds"}
    assert {"max_turns", "max_tokens"} <= set(AgentConfig.model_fields)


def test_readme_says_where_its_numbers_come_from() -> None:
    measured = README.split("## What was measured\n")[1].split("\n## ")[0]
    before_the_table = measured.split("\n|")[0]
    for words in ("configs/embedded.toml", "half of each group", "rule-based", "generated shell tasks", "held-out"):
        assert words in before_the_table, words
    assert SHIPPED["embedded.toml"].guidance.model_dump()["share"] == 0.5
    assert "The paper's benchmark numbers are not reproduced" in README
    for link in re.findall(r"\]\((docs/[^)#]+)", measured):
        assert (ROOT / link).exists(), link


def test_figure_1_is_not_drawn() -> None:
    assert "figure-1" not in FIGURES
    (row,) = [row for row in table("Tables and figures") if row["Item"] == "Figure 1"]
    assert row["Function"].startswith("none: ")


def test_what_goes_beyond_the_paper_changes_nothing_unasked() -> None:
    assert Config().watch.share == 0.0
    assert all(config.watch.share == 0.0 for config in SHIPPED.values())
