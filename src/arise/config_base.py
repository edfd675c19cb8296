"""What every configuration section is made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """Frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LengthAdjustment(Section):
    """Eq. 17: how much a short success is worth more than a long one, once a group generates beyond the threshold."""

    length_strength: Fraction = 0.5
    length_threshold: Annotated[int, Field(ge=0)] = 16_384
