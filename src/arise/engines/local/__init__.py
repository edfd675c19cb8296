"""The local engine: a PyTorch policy in this process that samples with exact token records and trains.

`LocalEngine` is the public class. It is imported on first use, so that model folders can be listed without torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arise.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]


def __getattr__(name: str) -> Any:
    if name != "LocalEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from arise.engines.local.engine import LocalEngine

    return LocalEngine
