"""Which agent a configuration means, and the warm start in that agent's format."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from arise.compose.demonstrations import tool_demonstration_row
from arise.compose.starts import cached_start
from arise.config import Config, ToolAgentConfig
from arise.engines.formats.generic import GenericFormat
from arise.world.warm_start import Demonstration
from tests.unit.engines.formats.families import tokenizer_of

PRETRAINED: dict[str, Any] = {"kind": "pretrained", "name": "models/mine"}


def test_a_pretrained_model_calls_tools_and_the_small_one_writes_commands() -> None:
    assert Config().agent.kind == "shell"
    assert Config.model_validate({"model": PRETRAINED}).agent.kind == "tools"
    own = Config.model_validate({"model": PRETRAINED, "agent": {"max_turns": 3}})
    assert (own.agent.kind, own.agent.max_turns, own.agent.max_tokens) == ("tools", 3, 2048)
    assert Config.model_validate({"model": PRETRAINED, "agent": {"kind": "shell"}}).agent.kind == "shell"


def test_a_configuration_means_the_same_after_it_was_written_down() -> None:
    config = Config.model_validate({"model": PRETRAINED, "agent": {"tools": ["bash"]}})
    assert Config.model_validate(config.model_dump()) == config


@pytest.mark.parametrize(
    ("agent", "message"),
    [({"tools": []}, "at least 1 item"), ({"tools": ["fly"]}, "'bash'"), ({"reasoning": "hide"}, "'keep' or 'drop'")],
)
def test_settings_that_mean_nothing_are_refused(agent: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Config.model_validate({"model": PRETRAINED, "agent": agent})


def test_rows_of_the_tool_agent_cannot_be_rebuilt_with_the_bare_prompt() -> None:
    with pytest.raises(ValidationError, match=r"guidance.trained_with = false needs agent.kind = 'shell'"):
        Config.model_validate({"model": PRETRAINED, "guidance": {"kind": "scaffold", "trained_with": False}})


def test_a_demonstration_becomes_calls_of_bash() -> None:
    chat = GenericFormat(tokenizer_of("qwen3"))
    turns = (("$ ls\ncat spec.md", "one rule"), ("$ submit", ""))
    shown = Demonstration(instruction="Read it.", turns=turns, habits=frozenset())
    row = tool_demonstration_row(chat, ToolAgentConfig(tools=("bash",)), shown, np.random.default_rng(0))
    said = chat.safe.decode(row.ids_U[row.generated_U].tolist())
    assert '{"name": "bash", "arguments": {"command": "ls\\ncat spec.md"}}' in said
    assert said.endswith("Done.<|im_end|>")
    assert "one rule" not in said
    assert "one rule" in chat.safe.decode(row.ids_U.tolist())


def test_the_start_of_a_run_depends_on_the_agent() -> None:
    def start(**agent: Any) -> object:
        model = PRETRAINED | {"demonstrations": 4}
        return cached_start(Config.model_validate({"model": model, "agent": agent}))

    assert len({start(), start(kind="shell"), start(tools=["bash"]), start(system_prompt="Work.")}) == 4
