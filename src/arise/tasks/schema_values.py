"""Values that several sections of a task file share, and the base of all sections."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

HARBOR_FILE, BENCHFLOW_FILE = "task.toml", "task.md"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", re.IGNORECASE)
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Network = Literal["public", "no-network", "allowlist", "denylist"]
Host = Annotated[str, Field(pattern=r"^[^\s,]+$")]


def mebibytes(name: str, size: object) -> float:
    """Return a size such as '2G' in MiB."""
    found = _SIZE.fullmatch(str(size).strip())
    if found is None:
        raise ValueError(f"{name} must be a size such as '2G', got {size!r}")
    return float(found[1]) * _MIB[found[2].upper()]


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"must be an absolute path, got {path!r}")
    return path


def _below(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"must be a relative path without '..', got {path!r}")
    return path


Absolute = Annotated[str, AfterValidator(_absolute)]
Below = Annotated[str, AfterValidator(_below)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Text = Annotated[str, Field(pattern=r"\S")]
User = Annotated[str, Field(pattern=r"^[\w.-]+(:[\w.-]+)?$")] | Annotated[int, Field(ge=0)]


class TaskTable(BaseModel):
    """A table of a task file."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Connected(TaskTable):
    """A section with a network."""

    network_mode: Network | None = None
    allowed_hosts: list[Host] = Field(default_factory=list)

    @model_validator(mode="after")
    def _hosts(self) -> Self:
        if self.network_mode == "allowlist" and not self.allowed_hosts:
            raise ValueError("network_mode is 'allowlist', and allowed_hosts names no host")
        if self.network_mode != "allowlist" and self.allowed_hosts:
            raise ValueError("allowed_hosts has an effect with network_mode = 'allowlist' only")
        return self


class Phase(Connected):
    """Needs of a phase of a task beyond its environment."""

    user: User | None = None

    @model_validator(mode="after")
    def _open_or_closed(self) -> Self:
        if self.network_mode == "denylist":
            raise ValueError("network_mode = 'denylist' belongs to the environment")
        return self
