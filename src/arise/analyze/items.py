"""Items of OpenAI's Responses API: one reply of the agent is several items, which become one turn."""

from collections.abc import Mapping
from typing import Any

from arise.analyze.conversation import Conversation

CALLS = ("function_call", "custom_tool_call", "local_shell_call")
RESULTS = ("function_call_output", "custom_tool_call_output")
ITEMS = frozenset((*CALLS, *RESULTS, "reasoning"))
"""Types of items that chat messages do not have."""


def is_item(message: Mapping[str, Any]) -> bool:
    """Return whether a message is an item of a response: it has such a type and no role."""
    return message.get("type") in ITEMS and not message.get("role")


def add_item(into: Conversation, item: Mapping[str, Any], *, merge: bool) -> bool:
    """Add a message, reasoning or call of the agent; return whether the turn is still open.

    `merge` continues the open turn, so that the parts of one reply stay together.
    """
    kind = item.get("type")
    if kind == "reasoning":
        into.add_agent("", item.get("summary") or item.get("content"), merge=merge)
    elif kind in CALLS:
        into.add_agent("", merge=merge)
        arguments = item.get("arguments", item.get("input", item.get("action")))
        into.add_call(item.get("name") or "shell", arguments, item.get("call_id") or item.get("id"))
    else:
        into.add_agent(item.get("content"), merge=merge)
    return True
