"""The request guard: known hosts, read-only methods, a token off loopback, restrictive headers."""

import hmac
import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "arise_token"
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:(?P<port>[0-9]{1,5}))?", re.ASCII)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Return whether an address is on loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Middleware that refuses requests before they reach a page."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str = "") -> None:
        self.app, self.token = app, token
        self.hosts = {host.lower() for host in (*LOOPBACK_NAMES, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = self._refusal(scope)
        await (refused or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if [_host_name(host) in self.hosts for host in headers.getlist("host")] != [True]:
            return PlainTextResponse("this host name is not served here; start with --allow-host to add one", 400)
        if scope["method"] not in ("GET", "HEAD"):
            foreign = "origin" in headers
            return PlainTextResponse("reading only", 403 if foreign else 405, headers={"Allow": "GET, HEAD"})
        return self._without_token(scope, headers) if self.token else None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return None if the token is valid; move a token in the address into a cookie."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and self._right(given):
            answer = RedirectResponse(scope["path"] or "/", 303)
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if self._right(_cookie(headers.get("cookie", ""))) or self._right(bearer):
            return None
        return PlainTextResponse("open the address that `arise view` printed: it carries the token", 401)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())


def _host_name(host: str) -> str:
    """Return the host name without its port, IPv6 brackets included; empty if malformed."""
    found = _HOST.fullmatch(host)
    if not found or int(found["port"] or 0) > 65535:
        return ""
    return found["name"].lower()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
