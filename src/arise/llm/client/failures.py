"""The kinds of failed requests; each says what to do next."""

from arise.run.calls import Usage


class CallFailed(Exception):  # noqa: N818 - data for the ladder, not an error of the program
    """A request that gave no reply: `kind` says what to do, `alive` whether the server responded at all.

    `billed` is the usage the provider may have charged, None if it cannot have charged anything.
    """

    kind = "failed"
    alive = True
    billed: Usage | None = None


class Transient(CallFailed):
    """Refused connection, 5xx, time-out, a broken body: trying again may help."""

    kind = "unavailable"
    alive = False

    def __init__(self, detail: str, billed: Usage | None = None) -> None:
        super().__init__(detail)
        self.billed = billed


class Silent(Transient):
    """A server that took a request and has not answered in time: it may be busy."""


class RateLimited(CallFailed):
    """429, with the seconds the provider asks to wait."""

    kind = "rate_limited"

    def __init__(self, detail: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Refused(CallFailed):
    """The server rejects this request; a retry would get the same answer."""

    kind = "refused"


class Denied(CallFailed):
    """The server rejects all our requests: wrong key, model or address."""

    kind = "denied"
    alive = False
