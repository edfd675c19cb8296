"""One vLLM server over HTTP: token ids in, token ids with log-probs and the version of their weights out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import httpx2 as httpx

from arise.types import SamplingParams

MISSING_LOGPROB = -9999.0
"""The value that vLLM reports for a missing log-prob."""
ADAPTER = "arise-policy"
"""The name of the trained adapter on a server; each version replaces the one before."""


class ServerDown(ConnectionError):  # noqa: N818 - what happened, not which class of error it is
    """The server cannot be reached or failed inside; another server, or this one later, may answer."""


class WrongWeights(RuntimeError):  # noqa: N818 - what happened, not which class of error it is
    """The server answered with other weights than the request names: its answer must not be used."""


@dataclass(frozen=True)
class Generation:
    """What one request generated; `finish` is vLLM's word: stop, length or abort."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: str


@dataclass(frozen=True)
class Request:
    """One continuation to sample; `weights` names the version that the server must hold, and salts its prefix cache."""

    ids: Sequence[int]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    weights: str
    end_ids: Sequence[int]
    stop: Sequence[str] = ()
    adapter: bool = False
    """Whether these weights are the base model with the adapter that the server holds."""

    def body(self) -> dict[str, object]:
        """Return the body of the request.

        Cached keys and values depend on the weights that computed them, but vLLM looks them up by token ids alone. The
        salt separates the versions.
        """
        sampling: dict[str, object] = {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "logprobs": 0,
            "stop_token_ids": sorted(self.end_ids),
            "ignore_eos": True,  # ARISE itself chooses the end tokens
            "skip_special_tokens": False,
            "detokenize": bool(self.stop),
        }
        if self.stop:
            sampling |= {"stop": list(self.stop), "include_stop_str_in_output": True}
        model = {"model": ADAPTER} if self.adapter else {}
        return {"token_ids": list(self.ids), "sampling_params": sampling, "cache_salt": self.weights, **model}


def seed_of(params: SamplingParams, number: int, position: int) -> int:
    """Return the seed of one request: a function of what is sampled, so a repeated request gives the same tokens."""
    facts = f"{params.seed}\0{params.conversation}\0{number}\0{position}".encode()
    return int.from_bytes(blake2b(facts, digest_size=8).digest(), "big") >> 2


class Server:
    """The calls that ARISE makes to one server."""

    def __init__(self, address: str, client: httpx.AsyncClient, key: str = "") -> None:
        self.address, self._client = address.rstrip("/"), client
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    async def generate(self, request: Request) -> Generation:
        """Sample one continuation; raise WrongWeights if other weights produced a token."""
        answer = await self._call("POST", "/inference/v1/generate", request.body())
        return read_generation(answer, request)

    async def healthy(self, seconds: float = 30.0) -> bool:
        """Return whether the server answers within a time."""
        try:
            await self._call("GET", "/health", timeout=seconds)
        except ServerDown:
            return False
        return True

    async def version(self) -> str:
        """Return the release of vLLM, or an empty string if another program answers."""
        return str((await self._call("GET", "/version", timeout=10.0)).get("version", ""))

    async def load(self, folder: str, weights: str) -> None:
        """Load a folder in place; its name stamps every token. Requests in progress end with the tokens they have."""
        reload = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        await self._change(weights, "/collective_rpc", reload)

    async def load_adapter(self, folder: str, weights: str) -> None:
        """Replace the adapter on the base model, as `load` replaces all weights."""
        body = {"lora_name": ADAPTER, "lora_path": folder, "load_inplace": True}
        await self._change(weights, "/v1/load_lora_adapter", body)

    async def rename(self, weights: str) -> None:
        """Give the weights that the server holds another name."""
        await self._change(weights)

    async def _change(self, weights: str, path: str = "", body: Mapping[str, object] | None = None) -> None:
        await self._call("POST", "/pause?mode=abort&clear_cache=false")
        if path:
            await self._call("POST", path, body)
        await self._call("POST", "/update_weight_version", {"new_version": weights})
        await self._call("POST", "/resume")

    async def _call(
        self, method: str, path: str, body: Mapping[str, object] | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        limits: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
        try:
            answer = await self._client.request(method, self.address + path, json=body, headers=self._headers, **limits)
        except httpx.HTTPError as error:
            raise ServerDown(f"{self.address} cannot be reached: {type(error).__name__} {error}".rstrip()) from None
        if answer.status_code >= 500:
            raise ServerDown(f"{self.address}{path} failed: {answer.text[:500]}")
        if answer.status_code == 404 and f"`{ADAPTER}` does not exist" in answer.text:
            raise WrongWeights("no adapter: it was started anew")
        if answer.status_code == 404 and "No adapter found" in answer.text:
            folder = (body or {}).get("lora_path")
            raise ValueError(
                f"{self.address} cannot read {folder}: let servers see policy.weights_dir as the trainer does"
            )
        if answer.status_code == 404:
            raise ValueError(
                f"{self.address} does not offer {path}: start it with `arise engines serve`, which runs vLLM 0.32 with "
                "the calls of this configuration"
            )
        if answer.status_code >= 400:
            raise ValueError(f"{self.address}{path} refused the request: {answer.text[:500]}")
        typed = "json" in answer.headers.get("content-type", "")
        found: Any = answer.json() if typed and answer.content else {}
        return found if isinstance(found, dict) else {}


def read_generation(answer: Mapping[str, Any], request: Request) -> Generation:
    """Check and read an answer; nothing unexpected may enter a training batch."""
    (choice,) = answer["choices"]
    ids = tuple(choice["token_ids"] or ())
    content = (choice.get("logprobs") or {}).get("content") or ()
    logprobs = tuple(float(entry["logprob"]) for entry in content)
    if len(logprobs) != len(ids) or [entry["token_id"] for entry in content] != list(ids):
        raise ServerDown(f"{len(ids)} tokens came with {len(logprobs)} log-probs that do not belong to them")
    if bad := [value for value in logprobs if not math.isfinite(value) or value > 1e-6 or value <= MISSING_LOGPROB]:
        raise ServerDown(f"the log-prob {bad[0]} is not that of a sampled token")
    spans = choice.get("weight_versions") or ()
    versions = {str(span["version"]) for span in spans}
    if ids and versions != {request.weights}:
        raise WrongWeights(f"tokens of the weights {', '.join(sorted(versions)) or 'unknown'}, not {request.weights}")
    return Generation(ids, tuple(min(value, 0.0) for value in logprobs), str(choice["finish_reason"]))
