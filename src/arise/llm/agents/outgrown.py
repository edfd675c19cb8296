"""Distinguish a conversation that no longer fits the model's window from a model that cannot be reached."""

from arise.llm.client.client import Unanswered
from arise.llm.client.failures import TooLong
from arise.ports import PolicyLost


def require_outgrown(reply: Unanswered, first: bool) -> None:
    """Raise PolicyLost unless the agent's own turns filled the window; `first` is true before its first turn."""
    if reply.reason != TooLong.kind:
        raise PolicyLost(str(reply))
    if first:
        raise PolicyLost(
            f"{reply}: the first prompt does not fit into the model's window: shorten the instruction, "
            "or serve the model with a longer window"
        )
