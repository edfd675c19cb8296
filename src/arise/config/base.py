"""Base classes and types of configuration sections."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """A frozen section; unknown keys and values of another type are errors: `"8"` is not 8.

    Integers are accepted for floats.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ShownTexts(Section):
    """Settings shared by all kinds of guidance: the share of the prompt that it may take."""

    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Maximum tokens of shown texts in a prompt, newest need first; 0 means 60% of the context window."""


class LengthAdjustment(Section):
    """Eq. 17: the bonus of short over long successes once the tokens of a group exceed the threshold."""

    length_strength: Fraction = 0.5
    length_threshold: Annotated[int, Field(ge=0)] = 16_384
