"""The first call of a command: find out, before anything is spent, whether the endpoint can do what it will be asked.

It checks key, host, model, usage, window, reply shape and two control questions. What cannot work is refused with
its remedy within seconds. The findings are recorded with the replies, so a resumed run does not repeat it.
"""

import json
import logging
import os
import re
from dataclasses import replace
from hashlib import sha256

from arise.config.llm import EndpointConfig
from arise.errors import AriseError, Exit
from arise.llm.client.endpoint import Connection
from arise.llm.client.failures import CallFailed, Denied, RateLimited, Refused, Silent, Transient
from arise.llm.client.spend import Budget, own_host
from arise.llm.client.usage import is_reported
from arise.llm.first_call.discovery import ALIVE, stated_window
from arise.llm.first_call.needs import pairs_that_fit
from arise.llm.first_call.requests import (
    FIRST_CALL,
    PATIENCE,
    PAYMENT,
    REPLY_SECONDS,
    Sender,
    asked_in,
    constrained,
    modes,
    one_word,
)
from arise.llm.first_call.served import Needs, Served
from arise.llm.judge.control import control_question, right
from arise.llm.prompts.prompt import CONTRACT, to_json
from arise.llm.wire.marks import marks
from arise.run.calls import Recorded, Store

log = logging.getLogger(__name__)

__all__ = ["FIRST_CALL", "Needs", "Served", "first_call", "require_key"]

_CONTEXT = re.compile(r"context|too (?:long|large|many tokens)|maximum.{0,20}length|exceed", re.IGNORECASE)
_MODEL = re.compile(r"model.{0,60}(?:not|unknown|invalid|exist)|(?:no|unknown|invalid) (?:such )?model", re.IGNORECASE)
_FORM = re.compile(r"response_format|json_schema|schema|grammar|structured|guided", re.IGNORECASE)
_TOKENS = re.compile(r"\d[\d,]{2,}")
_SPARE = 64


async def first_call(
    endpoint: EndpointConfig, store: Store, budget: Budget, purpose: str, needs: Needs, *, again: bool = False
) -> Served:
    """Return what was found out about an endpoint; raise if it cannot work.

    `again` asks even if findings are on record; they still serve if the provider only limits our rate.
    """
    require_key(endpoint)
    budget.require_price(endpoint)
    place = _place(endpoint)
    known = _recorded(store, place)
    if known is None or again:
        connection = Connection(endpoint)
        try:
            found = await _found(Sender(connection, budget, purpose), needs)
        finally:
            await connection.close()
        if not found.unchecked:
            store.keep(place, _as_record(found))
        known = known if known and found.unchecked else found
    _require_window(endpoint, needs, known)
    return known


def require_key(endpoint: EndpointConfig) -> None:
    """Raise if the endpoint's key is not in the environment; a local server needs none."""
    if not os.environ.get(endpoint.api_key_env) and not own_host(endpoint.base_url):
        what = f"the environment variable {endpoint.api_key_env} holds no key"
        raise _unusable(endpoint, what, f"export {endpoint.api_key_env}=..., or name the variable that holds the key")


async def _found(sender: Sender, needs: Needs) -> Served:
    listed = await _listed(sender)
    found, failed = await (_judges(sender) if needs.judges else _answers(sender))
    if isinstance(failed, RateLimited) and not PAYMENT.search(str(failed)):
        why = f"the provider limits our rate ({failed}), so it has accepted the key"
        return Served(unchecked=f"not checked, and replies are not constrained: {why}; start again later to check it")
    if failed is not None:
        raise _unusable(sender.endpoint, f"{failed.kind}: {failed}", _remedy(sender.endpoint, needs, failed))
    _require_usage(sender.endpoint, found)
    window = await stated_window(sender.connection, listed)
    if window is None:
        window = await _probed(sender, needs, found.prompt_tokens)
    return replace(found, window=window, left_out=sender.left_out, seconds=sender.seconds)


async def _listed(sender: Sender) -> bytes:
    """Return the server's list of models; wait for a busy server, raise if there is none."""
    endpoint = sender.endpoint
    try:
        return await sender.connection.get(endpoint.base_url.rstrip("/") + "/models", ALIVE)
    except Silent as error:
        wait = "%s at %s: %s, it may be busy; waiting for its first reply, at most %.0f s"
        log.warning(wait, endpoint.model, endpoint.base_url, error, REPLY_SECONDS)
        return b""
    except Transient as error:
        raise _unusable(endpoint, f"{error.kind}: {error}", _remedy(endpoint, None, error)) from None


async def _answers(sender: Sender) -> tuple[Served, CallFailed | None]:
    reply = await sender.adapted(one_word())
    return (Served(), reply) if isinstance(reply, CallFailed) else (_noted(sender.endpoint, reply), None)


async def _judges(sender: Sender) -> tuple[Served, CallFailed | None]:
    """Ask the control questions in each reply mode until the server obeys one."""
    question = control_question(sender.endpoint.model)
    found, failed = Served(), None
    for mode in modes(sender.endpoint):
        if mode == "off" and found.prompt_tokens:
            break
        reply = await sender.adapted(asked_in(question, mode))
        if isinstance(reply, CallFailed):
            failed = reply
            if isinstance(reply, Refused) and _FORM.search(str(reply)) and sender.endpoint.structured == "auto":
                continue
            return found, failed
        text, kept = constrained(reply.text, mode)
        form = mode if kept or sender.endpoint.structured != "auto" else "off"
        found = replace(_noted(sender.endpoint, reply), control=right(question, text), structured=form)
        if kept:
            break
    return found, None if found.prompt_tokens else failed


def _noted(endpoint: EndpointConfig, reply: Recorded) -> Served:
    """Return what one reply shows; raise if it was cut off before it said anything."""
    if reply.finish == "length" and not reply.text.strip():
        limit = endpoint.max_tokens
        raise _unusable(
            endpoint,
            f"its reply was cut off at max_tokens = {limit:,} before it answered",
            f"it thinks first and needs room for the answer: set max_tokens = {4 * limit:,} or more, or turn thinking "
            "off with extra_body",
        )
    usage = reply.usage
    return Served(
        usage=is_reported(reply.estimated),
        prompt_tokens=usage.prompt_tokens if usage else 1,
        completion_tokens=usage.completion_tokens if usage else 1,
        thinks=True in marks(reply.text),
    )


async def _probed(sender: Sender, needs: Needs, least: int) -> int | None:
    """Probe an unstated window with a prompt of the greatest length; return None if it fits.

    A server refuses a prompt that is too long at once; one that starts to read it has accepted it. Some servers
    truncate silently: their token count reveals it.
    """
    endpoint = sender.endpoint
    wanted = min(needs.largest, endpoint.context_tokens) - _SPARE
    if wanted <= least:
        return None
    sender.connection.endpoint = endpoint.model_copy(update={"max_tokens": 1})
    reply = await sender.once(one_word(wanted), PATIENCE)
    sender.connection.endpoint = endpoint
    if isinstance(reply, Refused) and _CONTEXT.search(str(reply)):
        stated = [int(number.replace(",", "")) for number in _TOKENS.findall(str(reply))]
        return min([number for number in stated if number > 400], default=least)
    if isinstance(reply, Recorded) and reply.usage and not reply.estimated and reply.usage.prompt_tokens < wanted // 2:
        return reply.usage.prompt_tokens
    return None


def _require_usage(endpoint: EndpointConfig, found: Served) -> None:
    """Raise if tokens are not reported and the user may be billed for them."""
    free = endpoint.price is not None and endpoint.price.input == endpoint.price.output == 0.0
    if not found.usage and not free:
        raise _unusable(
            endpoint,
            "it does not report usage, so what a call costs cannot be known",
            "turn the reporting of usage on at the server, or say price = 0 in the endpoint's section (--price 0) if "
            "nobody is billed",
        )


def _require_window(endpoint: EndpointConfig, needs: Needs, found: Served) -> None:
    window = min(found.window or endpoint.context_tokens, endpoint.context_tokens)
    if window < needs.least:
        what = f"its window has {window:,} tokens, and a request of this command needs at least {needs.least:,}"
        raise _unusable(endpoint, what, _larger_window(needs, window, limited=endpoint.context_tokens == window))


def _larger_window(needs: Needs, window: int = 0, *, limited: bool = False) -> str:
    """Return what to do about a window; `limited` if the configuration and not the server sets it."""
    wanted = f"{needs.least:,} tokens or more"
    if needs.largest > needs.least:
        wanted += f", {needs.largest:,} to cut no trace"
    remedy = (
        f"start the server with a window of {wanted} (vLLM: --max-model-len, llama.cpp: -c, Ollama: "
        "OLLAMA_CONTEXT_LENGTH), or take a model with a larger one"
    )
    if limited:
        remedy = f"raise context_tokens in the endpoint's section to a window of {wanted}, if the server has it"
    fitting = min(pairs_that_fit(window), needs.max_pairs)
    return remedy + (f"; or keep the pool small: pool.max_pairs = {fitting}" if fitting else "")


def _remedy(endpoint: EndpointConfig, needs: Needs | None, failed: CallFailed) -> str:
    said = str(failed)
    if PAYMENT.search(said):
        return f"check the account that the key in {endpoint.api_key_env} belongs to"
    if isinstance(failed, Denied) and "404" not in said:
        return f"check the key in {endpoint.api_key_env} and what it may be used for"
    if isinstance(failed, Denied) or (isinstance(failed, Refused) and _MODEL.search(said)):
        return f"check the model's name ({endpoint.model}) and the address ({endpoint.base_url})"
    if isinstance(failed, Transient):
        return f"check that a server runs at {endpoint.base_url} and can be reached from here"
    if needs is not None and _CONTEXT.search(said):
        return _larger_window(needs)
    if _FORM.search(said) and endpoint.structured != "auto":
        return 'set structured = "auto" or "off" in the section of the endpoint'
    return "check the settings of the endpoint: model, temperature, top_p, max_tokens and extra_body"


def _unusable(endpoint: EndpointConfig, what: str, remedy: str) -> AriseError:
    return AriseError(
        "endpoint",
        Exit.JUDGE,
        f"{endpoint.model} at {endpoint.base_url} cannot be used: {what}",
        "nothing was started",
        remedy,
    )


def _place(endpoint: EndpointConfig) -> str:
    settings = endpoint.model_dump(mode="json", exclude={"price"})
    return sha256(to_json([CONTRACT, FIRST_CALL, settings]).encode()).hexdigest()


def _as_record(found: Served) -> Recorded:
    return Recorded(
        text=json.dumps(found.as_json()), finish="", model="", fingerprint="", template_hash=FIRST_CALL, usage=None
    )


def _recorded(store: Store, place: str) -> Served | None:
    reply = store.get(place)
    try:
        return Served.from_json(json.loads(reply.text)) if reply else None
    except (ValueError, KeyError, TypeError):
        return None
