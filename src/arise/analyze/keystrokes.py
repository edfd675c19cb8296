"""Replies of the Terminus agents, which state keystrokes in JSON or XML instead of calling a tool."""

import json
import re

_XML = re.compile(r"<keystrokes[^>]*>(.*?)</keystrokes>", re.DOTALL)
_SAID = re.compile(r"<(analysis|plan)>(.*?)</\1>", re.DOTALL)
_THOUGHTS = ("analysis", "state_analysis", "plan", "explanation")


def keystrokes_of(text: str) -> tuple[str, str] | None:
    """Return what a reply says and the keys it sends, joined; None for a reply of any other agent."""
    if "<keystrokes" in text:
        return "\n".join(said.strip() for _, said in _SAID.findall(text)), _joined(_XML.findall(text))
    if '"commands"' not in text or not ('"keystrokes"' in text or "task_complete" in text):
        return None
    try:
        reply = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(reply, dict) or not isinstance(reply.get("commands"), list):
        return None
    said = "\n".join(str(reply[name]) for name in _THOUGHTS if reply.get(name))
    return said, _joined([str(item.get("keystrokes", "")) for item in reply["commands"] if isinstance(item, dict)])


def _joined(keys: list[str]) -> str:
    return "\n".join(filter(None, (key.rstrip("\n") for key in keys)))
