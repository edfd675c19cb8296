"""A recording proxy: forward chat completions unchanged to an OpenAI-compatible server and record them."""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from arise.endpoint.app import key_of
from arise.endpoint.dialects import chat
from arise.endpoint.exchange import Refused
from arise.endpoint.recording import Recorder, StreamedReply, reply_of

NOT_FORWARDED = {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}
NOT_RETURNED = {"content-length", "content-encoding", "transfer-encoding", "connection", "server", "date"}


@dataclass(frozen=True)
class Upstream:
    """The upstream server: its base URL, such as `https://host/v1`, and the key that replaces the client's."""

    base_url: str
    key: str
    recorder: Recorder
    client: httpx.AsyncClient
    token: str = ""
    """The key that clients must send, or empty if none is required."""

    def refusal(self, request: Request) -> JSONResponse | None:
        """Return a refusal if the client's token is wrong, or None."""
        if not self.token or secrets.compare_digest(key_of(request), self.token):
            return None
        return _refused(Refused("key", "the API key is missing or unknown"))

    def headers(self, request: Request) -> dict[str, str]:
        """Return the client's headers to forward."""
        kept = {name: value for name, value in request.headers.items() if name.lower() not in NOT_FORWARDED}
        return {**kept, "authorization": f"Bearer {self.key}"} if self.key else kept

    async def complete(self, request: Request) -> Response:
        """Forward a request; record its answer before the last byte is sent."""
        if refusal := self.refusal(request):
            return refusal
        data = await request.body()
        try:
            body = json.loads(data)
            call = self.client.build_request(
                "POST", f"{self.base_url}/chat/completions", content=data, headers=self.headers(request)
            )
            answer = await self.client.send(call, stream=True)
        except ValueError as error:
            return _refused(Refused("invalid", f"the body is not JSON: {error}"))
        except httpx.HTTPError as error:
            said = f"{self.base_url} cannot be reached: {type(error).__name__}: {error}"
            return _refused(Refused("unavailable", said))
        if body.get("stream") and answer.status_code == httpx.codes.OK:
            headers = _back(answer)
            return StreamingResponse(self._streamed(body, answer), answer.status_code, headers)
        content = await answer.aread()
        if answer.status_code == httpx.codes.OK and (reply := reply_of(json.loads(content))):
            self.recorder.add(body, reply)
        return Response(content, answer.status_code, _back(answer))

    async def _streamed(self, body: dict[str, Any], answer: httpx.Response) -> AsyncIterator[bytes]:
        reply, recorded = StreamedReply(), False
        try:
            async for data in answer.aiter_bytes():
                if reply.feed(data) and not recorded:
                    self.recorder.add(body, reply.message())
                    recorded = True
                yield data
        finally:
            await answer.aclose()

    async def models(self, request: Request) -> Response:
        """Forward the request for the list of models."""
        if refusal := self.refusal(request):
            return refusal
        try:
            answer = await self.client.get(f"{self.base_url}/models", headers=self.headers(request))
        except httpx.HTTPError as error:
            return _refused(Refused("unavailable", f"{self.base_url} cannot be reached: {error}"))
        return Response(answer.content, answer.status_code, _back(answer))


def _back(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.lower() not in NOT_RETURNED}


def _refused(refused: Refused) -> JSONResponse:
    return JSONResponse(chat.error(refused), refused.status)


@asynccontextmanager
async def recording_app(base_url: str, key: str, recorder: Recorder, token: str = "") -> AsyncIterator[FastAPI]:
    """Build the proxy application and close its client afterwards."""
    async with httpx.AsyncClient(timeout=httpx.Timeout(3600, connect=30)) as client:
        upstream = Upstream(base_url.rstrip("/"), key, recorder, client, token)
        app = FastAPI(title="ARISE recorder", openapi_url=None)
        app.post("/v1/chat/completions", response_model=None)(upstream.complete)
        app.get("/v1/models", response_model=None)(upstream.models)
        yield app
