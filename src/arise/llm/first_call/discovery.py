"""Facts that a server states for free: whether it is there, and the window of its model."""

import json
from typing import Any
from urllib.parse import urlsplit

from arise.config.llm import EndpointConfig
from arise.llm.client.endpoint import Connection
from arise.llm.client.failures import CallFailed
from arise.llm.client.spend import own_host

ALIVE = 4.0
"""Seconds within which a server must answer anything at all."""
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx")


async def stated_window(connection: Connection, listed: bytes) -> int | None:
    """Return the tokens that prompt and reply may have together, if the server or the price table says so."""
    endpoint = connection.endpoint
    found = _of_listed(_json(listed), endpoint.model)
    if found is None and own_host(endpoint.base_url):
        root = _root(endpoint.base_url)
        props = _json(await _page(connection, f"{root}/props"))
        settings = props.get("default_generation_settings") if isinstance(props, dict) else None
        found = _whole(settings.get("n_ctx")) if isinstance(settings, dict) else None
        found = found or _of_listed(_json(await _page(connection, f"{root}/api/ps")), endpoint.model)
    return found or _public(endpoint)


async def _page(connection: Connection, url: str) -> bytes:
    """Return a page of a server that has answered before; empty if the page fails."""
    try:
        return await connection.get(url, ALIVE / 2)
    except CallFailed:
        return b""


def _of_listed(value: Any, model: str) -> int | None:
    """Return the window in a list of models: of vLLM, OpenRouter, llama.cpp or of Ollama's running models."""
    entries = (value.get("data") or value.get("models")) if isinstance(value, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or model not in (entry.get("id"), entry.get("model"), entry.get("name")):
            continue
        meta = entry.get("meta")
        for fields in (entry, meta if isinstance(meta, dict) else {}):
            for name in _WINDOWS:
                if found := _whole(fields.get(name)):
                    return found
    return None


def _public(endpoint: EndpointConfig) -> int | None:
    if own_host(endpoint.base_url):
        return None
    import genai_prices

    try:
        usage = genai_prices.Usage(input_tokens=1, output_tokens=1)
        return genai_prices.calc_price(usage, endpoint.model).model.context_window
    except LookupError:
        return None


def _root(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
