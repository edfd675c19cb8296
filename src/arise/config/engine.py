"""Settings of the engine, section `[policy]`. A new kind is one class here and one line in `compose/policies.py`."""

from typing import Annotated, Literal

from pydantic import Field

from arise.config.base import Count, Positive, Section
from arise.config.imported import Imported


class PolicyConfig(Section):
    """The embedded engine: device, tokens per micro-batch, conversations decoded together.

    Update memory grows with `token_budget`; sampling memory with `batch_rows` times the longest conversation, plus
    `cache_gib` for conversations between turns.
    """

    kind: Literal["embedded"] = "embedded"
    device: str = "cpu"
    token_budget: Count = 16_384
    batch_rows: Count = 64
    cache_gib: Positive = 2.0
    gradient_checkpointing: bool = False


class ImportedEngine(Imported):
    """A custom engine that samples and trains the policy of `[model]`."""


EngineChoice = Annotated[PolicyConfig | ImportedEngine, Field(discriminator="kind")]
