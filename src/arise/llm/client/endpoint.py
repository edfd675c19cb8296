"""One request to an OpenAI-compatible server, without retries; a request without a reply raises CallFailed.

Servers are untrusted: bodies are read up to a limit, redirects are not followed, and the whole exchange has one time
limit.
"""

import asyncio
import math
import os
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from arise.config.llm import EndpointConfig
from arise.llm.client.completion import NotACompletion, read_completion
from arise.llm.client.constraint import constraint
from arise.llm.client.failures import (
    CallFailed,
    Denied,
    RateLimited,
    Refused,
    Silent,
    TooLong,
    Transient,
    fills_window,
    message_of,
)
from arise.llm.client.spend import own_host
from arise.llm.client.usage import RequestSize, size_of
from arise.llm.prompts.prompt import to_json
from arise.llm.prompts.shapes import Shape
from arise.run.calls import Recorded

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

ERROR_BYTES = 16_384
PAGE_BYTES = 4_194_304
"""The most bytes read of a list of models; a gateway's has hundreds of entries."""
REPLY_BYTES = 524_288
BYTES_PER_TOKEN = 32
"""A reply is read up to REPLY_BYTES plus this many bytes for each allowed token, escapes and reasoning included."""
SHORTEST_PAUSE = 0.1
"""In seconds; a shorter Retry-After is ignored, because the back-off waits at least as long anyway."""


class Request(Protocol):
    """A request and the cache key of its reply."""

    @property
    def messages(self) -> tuple[dict[str, Any], ...]: ...
    @property
    def distinct(self) -> tuple[str, ...]: ...
    @property
    def template_hash(self) -> str: ...


def tools_of(prompt: Request) -> tuple[dict[str, Any], ...]:
    """Return the tools that a request offers; most requests offer none and have no such attribute."""
    return getattr(prompt, "tools", ())


def shape_of(prompt: Request) -> Shape | None:
    """Return the shape that a reply should have; requests of an agent have none."""
    return getattr(prompt, "shape", None)


def extra_of(prompt: Request) -> dict[str, Any]:
    """Return the additional body fields of this request; most requests have none."""
    return dict(getattr(prompt, "extra", {}))


def size_of_request(prompt: Request, endpoint: EndpointConfig) -> RequestSize:
    """Return the size of a request, including tools and a schema, which a provider may count as input."""
    asked = constraint(shape_of(prompt), endpoint.structured) | extra_of(prompt)
    return size_of((*prompt.messages, *tools_of(prompt), *([asked] if asked else [])), endpoint)


@dataclass
class Connection:
    """An endpoint with its connection pool."""

    endpoint: EndpointConfig

    def __post_init__(self) -> None:
        self._key = os.environ.get(self.endpoint.api_key_env, "").strip()
        self._http: AsyncClient | None = None

    async def send(self, prompt: Request, timeout: float) -> Recorded:
        """Send one request and read its reply within `timeout` seconds; raise CallFailed."""
        size = size_of_request(prompt, self.endpoint)
        sent = False

        async def trace(event: str, _info: Any) -> None:
            nonlocal sent
            sent = sent or event.endswith("send_request_headers.started")

        try:
            async with asyncio.timeout(timeout):
                body = await self._exchange(self._body(prompt), size, timeout, trace)
            return read_completion(body, size, prompt.template_hash, with_calls=bool(tools_of(prompt)))
        except CallFailed:
            raise
        except NotACompletion as error:
            raise Transient(self._safe(str(error)), error.usage) from None
        except TimeoutError:
            raise Transient(f"no reply within {timeout:.1f} s", size.most if sent else None) from None
        except Exception as error:  # a library can raise anything for a malformed response
            detail = self._safe(f"{type(error).__name__}: {error}")
            raise Transient(detail, size.most if sent else None) from None

    async def get(self, url: str, timeout: float) -> bytes:
        """Return the body at a URL of the server, empty for an HTTP error.

        Raise Transient without an answer, or Silent if the server accepted the request and did not answer in time.
        """
        taken = False

        async def trace(event: str, _info: Any) -> None:
            nonlocal taken
            taken = taken or event.endswith("send_request_headers.complete")

        watched = self._client().stream("GET", url, timeout=None, extensions={"trace": trace})
        try:
            async with asyncio.timeout(timeout), watched as response:
                if response.is_success:
                    return (await _start_of(response, timeout, PAGE_BYTES)).encode()
                return b""
        except CallFailed:
            raise
        except TimeoutError:
            raise (Silent if taken else Transient)(f"no answer within {timeout:.0f} s") from None
        except Exception as error:  # a library can raise anything for a malformed response
            raise Transient(self._safe(f"{type(error).__name__}: {error}")) from None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _exchange(self, content: bytes, size: RequestSize, timeout: float, trace: Any) -> bytes:
        """Return the body of a successful response; raise CallFailed for any other status."""
        import httpx2

        url = self.endpoint.base_url.rstrip("/") + "/chat/completions"
        try:
            async with self._client().stream(
                "POST", url, content=content, timeout=timeout, extensions={"trace": trace}
            ) as response:
                if not response.is_success:
                    raise self._of_status(response, await _start_of(response, timeout / 4))
                return await _whole(response, size)
        except httpx2.TimeoutException:
            raise TimeoutError from None

    def _client(self) -> "AsyncClient":
        if self._http is None:
            import httpx2

            own = own_host(self.endpoint.base_url)
            if not self._key and not own:
                raise Denied(f"the environment variable {self.endpoint.api_key_env} holds no key")
            self._http = httpx2.AsyncClient(
                headers={
                    "authorization": f"Bearer {self._key or 'none'}",
                    "content-type": "application/json",
                    "accept": "application/json",
                    "accept-encoding": "identity",
                    "user-agent": "arise",
                },
                follow_redirects=False,  # a redirect would send the trajectory to a host that the user did not name
                trust_env=not own,
                limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            )
        return self._http

    def _body(self, prompt: Request) -> bytes:
        endpoint = self.endpoint
        body: dict[str, Any] = {
            "model": endpoint.model,
            "messages": list(prompt.messages),
            "temperature": endpoint.temperature,
            "top_p": endpoint.top_p,
            "max_tokens": endpoint.max_tokens,
        }
        if tools := tools_of(prompt):
            body["tools"] = list(tools)
        body |= constraint(shape_of(prompt), endpoint.structured) | extra_of(prompt) | endpoint.extra_body
        return to_json({name: value for name, value in body.items() if value is not None}).encode()

    def _of_status(self, response: "Response", start: str) -> CallFailed:
        status = response.status_code
        detail = self._safe(f"HTTP {status}: {message_of(start)}")
        if status == 429:
            return RateLimited(detail, retry_after(response.headers))
        if response.is_redirect:
            place = self._safe(response.headers.get("location", "nowhere"))
            return Denied(f"HTTP {status}: redirected to {place}, which is not followed: base_url must name the server")
        if status in (401, 403, 404):
            return Denied(detail)
        if status in (408, 409, 425) or status >= 500 or status < 400:
            return Transient(detail)
        return TooLong(detail) if fills_window(start) else Refused(detail)

    def _safe(self, text: str) -> str:
        return (text.replace(self._key, "***") if self._key else text)[:300]


async def _whole(response: "Response", size: RequestSize) -> bytes:
    """Read and decompress a body up to its limit; refuse nested compression."""
    if "," in response.headers.get("content-encoding", ""):
        raise Transient("the reply is compressed more than once", size.most)
    limit = REPLY_BYTES + BYTES_PER_TOKEN * size.most.completion_tokens
    parts, total = [], 0
    async for part in response.aiter_bytes():
        total += len(part)
        if total > limit:
            raise Transient(f"the reply is longer than {limit:,} bytes", size.most)
        parts.append(part)
    return b"".join(parts)


async def _start_of(response: "Response", timeout: float, most: int = ERROR_BYTES) -> str:
    """Return the beginning of a body, as far as it can be read."""
    import httpx2

    start = b""
    if "," not in response.headers.get("content-encoding", ""):
        try:
            async with asyncio.timeout(timeout):
                async for part in response.aiter_bytes():
                    start += part[:most]
                    if len(start) >= most:
                        break
        except (httpx2.HTTPError, TimeoutError):
            pass
    return start[:most].decode("utf-8", "replace").strip()


def retry_after(headers: Any) -> float | None:
    """Return the seconds of a Retry-After (or retry-after-ms) header, or None."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value[:100]).timestamp() - time()
            except (ValueError, TypeError, OverflowError):
                continue
        if math.isfinite(seconds) and seconds >= SHORTEST_PAUSE:
            return seconds
    return None
