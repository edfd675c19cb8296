"""Parse the body of a chat completion; anything a server sends becomes a reply or `NotACompletion`.

Only the answer is text; reasoning fields are counted, never read.
"""

import json
from collections.abc import Mapping
from typing import Any

from arise.llm.client.usage import RequestSize, counted
from arise.run.calls import Recorded, Usage

NAME_CHARS = 200


class NotACompletion(ValueError):  # noqa: N818 - data about a reply, not an error of the program
    """A body without a usable answer, with the usage that is still billed."""

    def __init__(self, detail: str, usage: Usage) -> None:
        super().__init__(detail)
        self.usage = usage


def read_completion(body: bytes, size: RequestSize, template_hash: str, *, with_calls: bool = False) -> Recorded:
    """Parse a body into a reply; its billed usage does not depend on whether the reply is usable.

    `with_calls` records text, reasoning and tool calls as one JSON object, where tools were offered.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotACompletion(f"not JSON: {type(error).__name__}", size.most) from None
    if not isinstance(value, dict):
        raise NotACompletion(f"a JSON {type(value).__name__}, not a chat completion", size.most)
    choices = [choice for choice in _listed(value.get("choices")) if isinstance(choice, dict)]
    usage, estimated = counted(value.get("usage"), size, sum(_bytes(choice.get("message")) for choice in choices))
    text = _text(choices[0].get("message")) if choices else None
    if text is None:
        raise NotACompletion(
            "not a chat completion: no text in choices[0].message.content", size.most if estimated else usage
        )
    if with_calls:
        text = _whole_message(text, choices[0]["message"])
    return Recorded(
        text=text.encode("utf-8", "replace").decode(),
        finish=_name(choices[0].get("finish_reason")),
        model=_name(value.get("model")),
        fingerprint=_name(value.get("system_fingerprint")),
        template_hash=template_hash,
        usage=usage,
        estimated=estimated,
    )


def _text(message: Any) -> str | None:
    """Return the answer: a string, nothing (an empty reply), or the text parts of a list; None for anything else."""
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = [part for part in _listed(content) if isinstance(part, dict) and part.get("type") == "text"]
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return "".join(texts) if texts and len(texts) == len(parts) else None


def _whole_message(text: str, message: Mapping[str, Any]) -> str:
    """Return the message as JSON, without fields of the wrong type."""
    reasoning = next((message[key] for key in ("reasoning_content", "reasoning") if message.get(key)), "")
    whole = {"content": text, "reasoning": reasoning, "tool_calls": _listed(message.get("tool_calls"))}
    return json.dumps(whole, ensure_ascii=False)


def _bytes(message: Any) -> int:
    """Count the bytes of a message, including its reasoning."""
    if not isinstance(message, dict):
        return 0
    texts = [text for name, text in message.items() if name != "role" and isinstance(text, str)]
    if not isinstance(message.get("content"), str):
        texts.append(_text(message) or "")
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(value: Any) -> str:
    return value[:NAME_CHARS].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
