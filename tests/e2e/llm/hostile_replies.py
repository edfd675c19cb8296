"""Two hundred replies that no provider should send, each by its name."""

import gzip
import json
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from arise.testing import Action, RawBody, Status, Wire

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"content-type: application/json\r\n"
MB = 1_000_000


def body(text: Any = "ok", **fields: Any) -> bytes:
    """A chat completion, or nearly one."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return json.dumps({"model": "judge-1", "choices": [choice], "usage": usage} | fields).encode()


def chunked(*chunks: bytes) -> bytes:
    return b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)


def coded(encoding: str, data: bytes) -> RawBody:
    return RawBody(data, headers=(f"content-encoding: {encoding}",))


def whole(status: bytes, content: bytes, *headers: bytes) -> Wire:
    return Wire(status + JSON + b"".join(h + b"\r\n" for h in headers) + b"\r\n" + content)


@cache
def bomb(window: int = zlib.MAX_WBITS | 16) -> bytes:
    """300 MB of zeros, compressed: gzip, or deflate with a window of 15."""
    packer = zlib.compressobj(1, zlib.DEFLATED, window)
    return b"".join([*(packer.compress(bytes(MB)) for _ in range(300)), packer.flush()])


def shapes() -> Iterator[tuple[str, bytes]]:
    """Bodies of a 200 that are not what they should be."""
    values: list[Any] = [None, True, 0, -1, 1.5, "text", "", [], {}, [[]], [None], [{}], {"0": {}}, 1e308]
    for value in values:
        yield f"a bare {value!r}", json.dumps(value).encode()
        yield f"choices {value!r}", json.dumps({"choices": value}).encode()
        yield f"a choice {value!r}", json.dumps({"choices": [value, value]}).encode()
        yield f"a message {value!r}", json.dumps({"choices": [{"message": value}]}).encode()
        yield f"content {value!r}", body(value)
        yield f"usage {value!r}", body(usage=value)
        yield f"tokens {value!r}", body(usage={"prompt_tokens": value, "completion_tokens": value})
        yield f"cached {value!r}", body(usage={"prompt_tokens_details": {"cached_tokens": value}})
        yield f"names {value!r}", body(model=value, system_fingerprint=value)


def encodings() -> Iterator[tuple[str, bytes]]:
    """Bodies whose bytes or numbers are odd."""
    yield "NaN", b'{"choices": [{"message": {"content": NaN}}], "usage": {"prompt_tokens": NaN}}'
    yield "Infinity", b'{"choices": Infinity}'
    yield "a number of 5,000 digits", b'{"choices": ' + b"9" * 5000 + b"}"
    yield "overflow", b'{"choices": 1e99999, "usage": {"prompt_tokens": 1e99999}}'
    yield (
        "lone surrogates",
        b'{"model": "\\ud800", "choices": [{"message": {"content": "\\udfff"}, "finish_reason": "\\ud800"}]}',
    )
    yield "NUL", b'{"model": "a\\u0000b", "choices": [{"message": {"content": "\\u0000"}}]}'
    yield "a NUL byte", body().replace(b"ok", b"o\x00k")
    yield "invalid UTF-8", body().replace(b"ok", b"\xff\xfe\xc0")
    yield "BOM", b"\xef\xbb\xbf" + body()
    yield "UTF-16", body().decode().encode("utf-16")
    yield "UTF-32 without BOM", body().decode().encode("utf-32-le")
    yield "two completions", body() + body()
    yield "duplicate keys", b'{"choices": [], "choices": [{"message": {"content": "a", "content": "b"}}]}'
    yield "event stream", b"data: " + body() + b"\n\ndata: [DONE]\n\n"


def large() -> Iterator[tuple[str, bytes]]:
    """Bodies within the limit that are deep, long or many."""
    yield "deep lists", b"[" * 200_000
    yield "deep objects", b'{"choices":' * 50_000
    yield "a deep message", b'{"choices": [{"message": ' + b"[" * 900 + b"]" * 900 + b"}]}"
    yield "many choices", json.dumps({"choices": [{"message": {"content": "x"}}] * 8000}).encode()
    yield "many keys", b"{" + b",".join(b'"k%d": 1' % n for n in range(40_000)) + b"}"
    yield "a long model name", body(model="m" * 200_000)
    yield "a long answer", body("x" * 400_000)
    yield "forty thousand keys in an answer", body("{" + ",".join(f'"k{n}":1' for n in range(40_000)) + ',"k1":1}')
    yield "a deep answer", body("[" * 100_000)
    yield "an answer of line breaks", body("\n" * 200_000)
    yield "an answer of braces", body("{\n" * 100_000)
    yield "an answer of tags", body("<think" * 60_000)
    yield "only reasoning", json.dumps({"choices": [{"message": {"content": None, "reasoning_content": "x"}}]}).encode()


def floods() -> Iterator[tuple[str, Action]]:
    """Too much, compressed or not."""
    yield "200 MB of content", Wire(OK + JSON + b"\r\n" + body()[:-40], b"x" * MB, 200)
    yield "200 MB in chunks", Wire(OK + JSON + b"transfer-encoding: chunked\r\n\r\n", chunked(b"x" * MB), 200)
    yield "200 MB of an error", Wire(b"HTTP/1.1 500 No\r\n" + JSON + b"\r\n", b"x" * MB, 200)
    yield "200 MB of a refusal", Wire(b"HTTP/1.1 400 No\r\n" + JSON + b"\r\n", b"x" * MB, 200)
    yield "200 MB of white space", Wire(OK + JSON + b"\r\n", b" " * MB, 200)
    yield "a gzip bomb", coded("gzip", bomb())
    yield "a gzip bomb of an error", Wire(b"HTTP/1.1 503 No\r\ncontent-encoding: gzip\r\n" + JSON + b"\r\n" + bomb())
    yield "a bomb in a bomb", coded("gzip, gzip", gzip.compress(bomb()))
    yield "five encodings", coded("gzip, gzip, gzip, gzip, gzip", gzip.compress(body()))
    yield "a deflate bomb", coded("deflate", bomb(zlib.MAX_WBITS))
    yield "headers without end", Wire(OK, b"x-flood: " + b"y" * 1000 + b"\r\n", 20_000)
    yield "one endless header", Wire(OK + b"x-flood: ", b"y" * MB, 50)
    yield "an endless status line", Wire(b"HTTP/1.1 200 ", b"y" * MB, 50)
    yield (
        "trailers without end",
        Wire(
            OK + JSON + b"transfer-encoding: chunked\r\n\r\n" + chunked(body()) + b"0\r\n",
            b"x-t: " + b"y" * 1000 + b"\r\n",
            20_000,
        ),
    )
    yield "informational responses without end", Wire(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 20_000)


def slow() -> Iterator[tuple[str, Action]]:
    """Bytes that come one by one, or never."""
    start = OK + JSON + b"content-length: 5000\r\n\r\n"
    yield "a body byte by byte", Wire(start, b" ", 5000, 0.05)
    yield "chunks byte by byte", Wire(OK + JSON + b"transfer-encoding: chunked\r\n\r\n", chunked(b" "), 5000, 0.05)
    yield "headers byte by byte", Wire(OK + b"x-slow: ", b"y", 5000, 0.05)
    yield "an error byte by byte", Wire(b"HTTP/1.1 503 No\r\ncontent-length: 5000\r\n\r\n", b" ", 5000, 0.05)
    yield "informational responses one by one", Wire(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 5000, 0.05)
    yield "silence", Wire(b"", b"", 1, 60.0)
    yield "a longer content-length than content", Wire(start + body(), b"", 1, 60.0)


def broken() -> Iterator[tuple[str, Action]]:
    """Protocol errors and lies about length."""
    length = b"content-length: %d"
    yield "nothing at all", Wire(b"")
    yield "not HTTP", Wire(b"\x16\x03\x01\x02\x00")
    yield "HTTP/9.9", Wire(b"HTTP/9.9 200 OK\r\n\r\n" + body())
    yield "HTTP/1.0 keep-alive", Wire(b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + JSON + b"\r\n" + body())
    yield "status 99999", Wire(b"HTTP/1.1 99999 OK\r\n\r\n")
    yield "switching protocols", Wire(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n" + body())
    yield "no content", Wire(b"HTTP/1.1 204 No Content\r\n\r\n")
    yield "not modified", Wire(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    yield "closed in the middle", whole(OK, body()[:40], length % len(body()))
    yield "a shorter content-length than content", whole(OK, body(), length % 40)
    yield "a negative content-length", whole(OK, body(), length % -1)
    yield "a huge content-length", whole(OK, body(), length % 10**30)
    yield "two content-lengths", whole(OK, body(), length % 10, length % 20)
    yield "length and chunks", whole(OK, chunked(body()) + b"0\r\n\r\n", length % 5, b"transfer-encoding: chunked")
    yield "a chunk of a wrong length", whole(OK, b"fffffff\r\nx\r\n", b"transfer-encoding: chunked")
    yield "a chunk of a negative length", whole(OK, b"-5\r\nx\r\n", b"transfer-encoding: chunked")
    yield "an unknown transfer encoding", whole(OK, body(), b"transfer-encoding: rot13")
    yield "gzip that is not", coded("gzip", body())
    yield "gzip cut off", coded("gzip", gzip.compress(body())[:-12])
    yield "gzip as it should be", coded("gzip", gzip.compress(body()))
    yield "an unknown encoding", coded("rot13", body())
    yield "HTML", RawBody(b"<html>login</html>", "text/html")


def statuses() -> Iterator[tuple[str, Action]]:
    """Errors whose bodies are no errors, and waits that are no waits."""
    for code in (
        300,
        301,
        302,
        303,
        307,
        308,
        400,
        401,
        402,
        403,
        404,
        405,
        408,
        409,
        413,
        418,
        422,
        425,
        451,
        500,
        599,
    ):
        yield f"status {code}", Status(code, body='{"error": ' + "[" * 5000)
    for wait in ("0", "nan", "inf", "-5", "1e9", "1e999", "x" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"):
        yield f"Retry-After {wait[:20]}", Status(429, retry_after=wait, body="[" * 100_000)


@cache
def hostile() -> dict[str, Action]:
    """All of them by name."""
    named: list[tuple[str, Action]] = [
        (name, RawBody(content)) for name, content in [*shapes(), *encodings(), *large()]
    ]
    return dict([*named, *floods(), *slow(), *broken(), *statuses()])
