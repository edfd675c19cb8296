"""Servers of six kinds, as far as a judge can tell them apart: what they state, refuse and enforce, and their caches.

`FakeLLM(speaking("vllm", honest(...)), pages=pages_of("vllm"))` answers as vLLM would with an honest judge behind it.
"""

import json
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any

from arise.testing.fake_llm import Action, Ask, Say, Script, Status

MODEL = "judge-model"
CHARS_PER_TOKEN = 4
CACHE_BLOCK = 64
"""Tokens in a block of a prompt cache; only whole blocks are reused."""


@dataclass(frozen=True)
class Dialect:
    """How a kind of server behaves."""

    forms: tuple[str, ...]
    unknown_model: Status
    window: str = ""
    """Where it states its window: models, props, ps or nowhere."""
    refused_form: str = ""
    cuts_silently: bool = False


def _error(code: int, message: str) -> Status:
    return Status(code, body=json.dumps({"error": {"message": message}}))


DIALECTS = {
    "vllm": Dialect(("grammar", "json_schema"), _error(404, f"The model `{MODEL}` does not exist."), "models"),
    "llama.cpp": Dialect(("grammar", "json_schema"), _error(404, "model not found"), "props"),
    "ollama": Dialect(("json_schema",), _error(404, f"model '{MODEL}' not found"), "ps", cuts_silently=True),
    "deepseek": Dialect(
        (), _error(400, "Model Not Exist"), refused_form="This response_format type is unavailable now"
    ),
    "openai": Dialect(("json_schema",), _error(404, f"The model `{MODEL}` does not exist or you do not have access")),
    "gateway": Dialect(("json_schema",), _error(400, f"{MODEL} is not a valid model ID"), "models"),
}  # fmt: skip


def pages_of(kind: str, window: int = 32_768, model: str = MODEL) -> dict[str, Any]:
    """Return what a kind of server answers to GET."""
    listed: dict[str, Any] = {"id": model, "object": "model"}
    names = {"vllm": "max_model_len", "gateway": "context_length"}
    if kind in names:
        listed[names[kind]] = window
    pages: dict[str, Any] = {"/v1/models": {"object": "list", "data": [listed]}}
    if kind == "llama.cpp":
        pages["/props"] = {"default_generation_settings": {"n_ctx": window}}
    if kind == "ollama":
        pages["/api/ps"] = {"models": [{"name": model, "model": model, "context_length": window}]}
    return pages


def speaking(kind: str, script: Script, *, window: int = 32_768, key: str = "", model: str = MODEL) -> Script:
    """Return a script that answers as a kind of server with this judge behind it; an empty key accepts any."""
    dialect, cache = DIALECTS[kind], PromptCache()

    async def answer(ask: Ask) -> Action:
        if key and ask.key != key:
            return _error(401, "Incorrect API key provided")
        if ask.model != model:
            return dialect.unknown_model
        tokens = len(ask.system + ask.user) // CHARS_PER_TOKEN
        if tokens > window and not dialect.cuts_silently:
            return _error(400, f"This model's maximum context length is {window} tokens, you requested {tokens}.")
        if "response_format" in ask.body and dialect.refused_form:
            return _error(400, dialect.refused_form)
        found = script(ask)
        said = await found if isinstance(found, Awaitable) else found
        if not isinstance(said, Say):
            return said
        reused = cache.reused(ask)
        return replace(
            said, text=_formed(said.text, ask, dialect), prompt_tokens=min(tokens, window), cached_tokens=reused
        )

    return answer


class PromptCache:
    """A provider's prompt cache: the longest beginning that an earlier prompt shares, in whole blocks."""

    def __init__(self) -> None:
        self._seen: list[str] = []

    def reused(self, ask: Ask) -> int:
        """Return the tokens of a prompt that are in the cache, and add the prompt to it."""
        prompt = ask.system + ask.user
        longest = max((_shared(prompt, known) for known in self._seen), default=0)
        self._seen.append(prompt)
        return longest // CHARS_PER_TOKEN // CACHE_BLOCK * CACHE_BLOCK


def _shared(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _formed(text: str, ask: Ask, dialect: Dialect) -> str:
    """Return the reply in the form that the request asks for, if the server can enforce it."""
    if "grammar" in dialect.forms and ("grammar" in ask.body or "structured_outputs" in ask.body):
        wanted = ask.body.get("grammar") or ask.body["structured_outputs"]["grammar"]
        return f'{{"confined":true}}\n{text}' if "confined" in wanted else text
    if "json_schema" not in dialect.forms or "response_format" not in ask.body:
        return text
    schema = ask.body["response_format"]["json_schema"]["schema"]
    if "lines" not in schema["properties"]:
        return text
    lines = [json.loads(line) for line in text.splitlines()]
    rest: dict[str, Any] = next((line for line in lines if "diagnostics" in line), {})
    return json.dumps({"lines": [line for line in lines if "diagnostics" not in line]} | rest, indent=1)
