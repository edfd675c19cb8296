"""One request to an OpenAI-compatible server, its own retries off; every failure is one of four kinds."""

import asyncio
import os
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from arise.config_models import Endpoint
from arise.models.spend import own_host
from arise.models.store import Recorded, Usage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI


class Request(Protocol):
    """What a model is sent, and by what its reply is found again."""

    @property
    def messages(self) -> tuple[dict[str, str], ...]: ...
    @property
    def distinct(self) -> tuple[str, ...]: ...
    @property
    def template_hash(self) -> str: ...


class CallFailed(Exception):  # noqa: N818 - data for the ladder, not an error of the program
    """A request that gave no reply: `kind` says what to do, `alive` whether the server showed signs of life."""

    kind = "failed"
    alive = True


class Transient(CallFailed):
    """Refused connection, 5xx, time-out, a broken body: trying again may help."""

    kind = "unavailable"
    alive = False


class RateLimited(CallFailed):
    """429, with the seconds the provider asks to wait."""

    kind = "rate_limited"

    def __init__(self, detail: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Refused(CallFailed):
    """The server does not want this request: another try would get the same answer."""

    kind = "refused"


class Denied(CallFailed):
    """The server wants no request of ours: wrong key, wrong model, wrong address."""

    kind = "denied"
    alive = False


@dataclass
class Connection:
    """An endpoint with its connection pool."""

    endpoint: Endpoint

    def __post_init__(self) -> None:
        # Importing the SDK takes seconds: here, where a run is built, and not in the middle of its first iteration.
        import openai

        self._openai = openai
        self._key = os.environ.get(self.endpoint.api_key_env, "")
        self._sdk: AsyncOpenAI | None = None

    async def send(self, prompt: Request, timeout: float) -> Recorded:
        """The reply of one request, body included, within `timeout` seconds; raises CallFailed."""
        openai = self._openai
        try:
            async with asyncio.timeout(timeout):
                completion = await self._client().chat.completions.create(**self._body(prompt), timeout=timeout)
        except openai.APIStatusError as error:
            raise self._of_status(error) from None
        except (openai.APITimeoutError, TimeoutError):
            raise Transient(f"no reply within {timeout:.1f} s") from None
        except (openai.APIError, openai.OpenAIError, ValueError, OSError) as error:
            raise Transient(self._safe(f"{type(error).__name__}: {error}")) from None
        return _recorded(completion, prompt)

    async def close(self) -> None:
        if self._sdk is not None:
            await self._sdk.close()
            self._sdk = None

    def _client(self) -> "AsyncOpenAI":
        if self._sdk is None:
            openai = self._openai
            own = own_host(self.endpoint.base_url)
            if not self._key and not own:
                raise Denied(f"the environment variable {self.endpoint.api_key_env} holds no key")
            self._sdk = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self.endpoint.base_url,
                max_retries=0,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=not own),
            )
        return self._sdk

    def _body(self, prompt: Request) -> dict[str, Any]:
        endpoint = self.endpoint
        return {
            "model": endpoint.model,
            "messages": list(prompt.messages),
            "temperature": endpoint.temperature,
            "top_p": endpoint.top_p,
            "max_tokens": endpoint.max_tokens,
            "extra_body": endpoint.extra_body or None,
        }

    def _of_status(self, error: "APIStatusError") -> CallFailed:
        status = error.status_code
        detail = self._safe(f"HTTP {status}: {error.message}")
        if status == 429:
            return RateLimited(detail, retry_after(error.response.headers))
        if status in (401, 403, 404):
            return Denied(detail)
        if status in (408, 409, 425) or status >= 500:
            return Transient(detail)
        return Refused(detail)

    def _safe(self, text: str) -> str:
        return (text.replace(self._key, "***") if self._key else text)[:300]


def retry_after(headers: Any) -> float | None:
    """Seconds of a Retry-After (or retry-after-ms) header, None without a usable one."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time())
        except ValueError:
            pass
    return None


def _recorded(completion: Any, prompt: Request) -> Recorded:
    """What a completion says; a body of another shape is a broken body."""
    try:
        choice = completion.choices[0]
        text = choice.message.content or ""
        usage = completion.usage
        details = usage and getattr(usage, "prompt_tokens_details", None)
        return Recorded(
            text=text.encode("utf-8", "replace").decode(),
            finish=str(choice.finish_reason or ""),
            model=str(completion.model or ""),
            fingerprint=str(getattr(completion, "system_fingerprint", None) or ""),
            template_hash=prompt.template_hash,
            usage=Usage(
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                cached_tokens=(details and details.cached_tokens) or 0,
            )
            if usage
            else None,
        )
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise Transient(f"not a chat completion: {type(error).__name__}") from None
