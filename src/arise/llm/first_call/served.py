"""What the first call found out about an endpoint, and how later calls use it."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from arise.config.llm import EndpointConfig
from arise.llm.client.spend import own_host
from arise.run.calls import Usage
from arise.text import numbers

REPLY_SHARE = 4
"""A reply may take at most the window divided by this number, which matters for small windows."""
LEAST_REPLY = 512


@dataclass(frozen=True)
class Needs:
    """What the calls of a command need of an endpoint, in tokens.

    `least` is the minimum for a request (its fixed part, rubrics, the shortest trace, a reply), `largest` the longest
    prompt that can occur. `judges` tells whether there are control questions and replies have a shape. `max_pairs` is
    the limit of a run's pool, 0 where the rubrics are given.
    """

    least: int
    largest: int
    judges: bool = True
    max_pairs: int = 0


@dataclass(frozen=True)
class Served:
    """Facts about an endpoint; None where the first call could not tell."""

    structured: str = "off"
    window: int | None = None
    control: bool | None = None
    """Whether the control questions were answered correctly; None if they were not answered."""
    usage: bool = True
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thinks: bool = False
    left_out: tuple[str, ...] = ()
    """Fields of a request that the server refuses and that are therefore not sent."""
    unchecked: str = ""
    """Why nothing could be found out, although the endpoint may work."""

    @property
    def tokens(self) -> Usage:
        """The tokens of the first reply."""
        return Usage(prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens)

    def applied(self, endpoint: EndpointConfig) -> EndpointConfig:
        """Return the endpoint as it will be used: with the best constraint that works, and the known window."""
        window = min(endpoint.context_tokens, self.window or endpoint.context_tokens)
        reply = min(endpoint.max_tokens, max(LEAST_REPLY, window // REPLY_SHARE))
        structured = self.structured if endpoint.structured == "auto" else endpoint.structured
        changes = {"structured": structured, "context_tokens": window, "max_tokens": reply}
        found = endpoint.model_copy(update=changes)
        for name in self.left_out:
            found = found.without(name)
        if "max_tokens" in self.left_out:
            extra = found.extra_body | {"max_completion_tokens": reply}
            found = found.model_copy(update={"extra_body": extra})
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the facts as values of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Served":
        """Return recorded facts; raise TypeError or KeyError for anything else."""
        known = {field.name: value[field.name] for field in fields(cls)}
        return cls(**(known | {"left_out": tuple(known["left_out"])}))

    def line(self, endpoint: EndpointConfig, needs: Needs, price: str) -> str:
        """Return one line for the screen that says what was found."""
        if self.unchecked:
            return f"{endpoint.model}: {self.unchecked}"
        parts = [f"{endpoint.model} answers in {numbers.seconds(self.seconds)}"]
        parts.append(self._window(endpoint, needs))
        if needs.judges:
            parts.append(_FORMS[self.applied(endpoint).structured])
            parts.append(_CONTROLS[self.control])
        parts.append("usage reported" if self.usage else "no usage reported")
        parts.append(price)
        if self.thinks:
            parts.append("thinks before it answers")
        parts += [f"without {name}, which it refuses" for name in self.left_out]
        return ", ".join(parts)

    def _window(self, endpoint: EndpointConfig, needs: Needs) -> str:
        if self.window is None:
            return f"window not known ({endpoint.context_tokens:,} tokens assumed)"
        found = f"window {self.window:,} tokens"
        room = self.applied(endpoint).context_tokens
        return found + (f" (the longest traces are cut: {needs.largest:,} wanted)" if needs.largest > room else "")


_FORMS = {
    "json_schema": "replies constrained by JSON schema",
    "grammar": "replies constrained by grammar",
    "off": "replies not constrained",
    "auto": "replies not constrained",
}
_CONTROLS = {
    True: "control questions right",
    False: "CONTROL QUESTIONS WRONG (a weak judge; `arise judge check` measures it)",
    None: "CONTROL QUESTIONS NOT ANSWERED in the required form (`arise judge check` measures it)",
}


def price_text(endpoint: EndpointConfig, nano_usd: int | None) -> str:
    """Return the price of the first call as text, or that it is not known."""
    if nano_usd is not None:
        return "free" if nano_usd == 0 else f"this call {numbers.dollars(nano_usd / 1e9, 5)}"
    return "price not known" + (" (price = 0 says that nobody is billed)" if own_host(endpoint.base_url) else "")
