"""Half-open requests: a connection that does not send a whole request is closed, all others are answered meanwhile."""

import socket
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from arise.report.dashboard.request_deadline import RequestDeadline
from tests.dashboard.serving import served

HEAD = b"GET /runs/first HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestDeadline, "seconds", 0.6)


def until_closed(connection: socket.socket, trickle: bytes = b"") -> float:
    """Seconds until the server hangs up, while bytes of `trickle` are sent one after another."""
    started = time.monotonic()
    connection.settimeout(0.1)
    while time.monotonic() - started < 8.0:
        try:
            if trickle:
                connection.sendall(trickle[:1])
            while connection.recv(65536):
                pass
        except TimeoutError:
            continue
        except OSError:
            pass
        return time.monotonic() - started
    raise AssertionError("the connection was never closed")


@pytest.mark.parametrize(
    ("sent", "trickle"),
    [
        (b"", b""),
        (HEAD, b""),
        (HEAD + b"X: ", b"a"),
        (HEAD + b"Content-Length: 100\r\n\r\n", b""),
        (HEAD + b"\r\n" + HEAD, b""),
    ],
    ids=["nothing", "half a head", "byte by byte", "no body", "half a second request"],
)
def test_an_incomplete_request_is_closed_at_the_deadline(run: Path, sent: bytes, trickle: bytes) -> None:
    with served(run) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(sent)
            with urlopen(f"{address}/runs/first", timeout=20) as page:  # noqa: S310 - loopback
                assert page.status == 200, "others are answered meanwhile"
            assert until_closed(connection, trickle) < 7.5


def test_a_stream_of_events_outlives_the_deadline(run: Path) -> None:
    with served(run) as address:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(HEAD.replace(b"/runs/first", b"/runs/first/live") + b"\r\n")
            time.sleep(1.5)
            connection.settimeout(5)
            received = b""
            while b"event: commit" not in received:
                received += connection.recv(65536)
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(65536)
