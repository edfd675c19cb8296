"""What every configuration section is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Frozen; an unknown key is an error, and so is a value of another type: `"8"` is not 8.

    A whole number is fine where a fraction is asked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ShownTexts(Section):
    """What every kind of guidance shares: how much of a prompt it may take."""

    max_tokens: Annotated[int, Field(ge=0)] = 0
    """Most tokens that shown texts may take in a prompt, newest need first; 0 is six tenths of the model's window."""


class LengthAdjustment(Section):
    """Eq. 17: how much a short success is worth more than a long one, once a group generates beyond the threshold."""

    length_strength: Fraction = 0.5
    length_threshold: Annotated[int, Field(ge=0)] = 16_384
