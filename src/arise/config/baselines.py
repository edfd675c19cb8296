"""Settings of the baseline methods; defaults are those of their papers or published scripts."""

from typing import Annotated, Literal

from pydantic import Field

from arise.config.base import Count, Fraction, LengthAdjustment, Positive, Section, ShownTexts
from arise.config.llm import EndpointConfig


class Scaffold(ShownTexts):
    """RuscaRL: criteria in the prompt, fewer for later rollouts of a group, none after a share `start` of the run."""

    kind: Literal["scaffold"] = "scaffold"
    start: Fraction = 0.2
    steepness: Positive = 125.0
    text: Literal["criteria", "skill"] = "criteria"
    trained_with: bool = False
    """Whether the update includes the scaffold; the published method removes it from the prompt before the update."""


class ResponseCredit(LengthAdjustment):
    """One reward per response: outcome plus share of criteria met, the outcome weighted by `outcome_weight`."""

    kind: Literal["response"] = "response"
    outcome_weight: Annotated[float, Field(ge=0.0)] = 1.0


class ElicitedCriteria(Section):
    """OnlineRubrics: criteria from comparing a group with reference attempts, used for that group only."""

    kind: Literal["elicited"] = "elicited"
    references: Count = 8
    per_pair: Count = 8
    """Maximum number of criteria from one comparison."""
    endpoint: EndpointConfig | None = None
    """The model for reference attempts; by default the scripted worker of the embedded world."""
