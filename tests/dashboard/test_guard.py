"""The page reads only, is served to known hosts only, and off loopback to those who know its token only."""

import asyncio
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message
from typer.testing import CliRunner

from arise.cli.app import app as command
from arise.report.dashboard.app import create_app
from arise.report.dashboard.catalogue import Catalogue
from arise.report.dashboard.guard import is_loopback

TOKEN = "a-token-that-is-long-enough"
EVERYWHERE = ".".join("0000")


def test_only_known_hosts_are_answered(client: TestClient) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil"):
        assert client.get("/runs/first", headers={"host": host}).status_code == 400
    for host in ("localhost:7788", "127.0.0.1", "[::1]:7788", "LOCALHOST"):
        assert client.get("/runs/first", headers={"host": host}).status_code == 200


def test_another_name_can_be_allowed(run: Path) -> None:
    app = create_app(Catalogue.of([run]), ["lab.internal"])
    assert TestClient(app, base_url="http://lab.internal").get("/runs/first").status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_get_requests_are_allowed(client: TestClient, method: str) -> None:
    assert client.request(method, "/runs/first").status_code == 405
    assert client.request(method, "/runs/first", headers={"origin": "http://evil.example"}).status_code == 403


def test_no_route_changes_anything(client: TestClient) -> None:
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        assert set(methods) == {"get"}, path


def test_headers_allow_nothing_from_elsewhere(client: TestClient) -> None:
    for address in ("/runs/first", "/static/arise.css", "/nowhere"):
        headers = client.get(address, headers={"origin": "http://evil.example"}).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_a_token_is_asked_for_and_kept_in_a_cookie(run: Path) -> None:
    client = TestClient(create_app(Catalogue.of([run]), token=TOKEN), base_url="http://127.0.0.1")
    assert client.get("/runs/first").status_code == 401
    assert client.get("/static/arise.css").status_code == 401
    assert client.get("/runs/first?token=wrong").status_code == 401
    assert client.get("/runs/first", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/runs/first", headers={"cookie": "arise_token=wrong"}).status_code == 401
    welcome = client.get(f"/runs/first?token={TOKEN}", follow_redirects=False)
    assert welcome.status_code == 303
    assert TOKEN not in welcome.headers["location"]
    assert {"httponly", "samesite=strict"} <= {p.strip().lower() for p in welcome.headers["set-cookie"].split(";")}
    assert client.get("/runs/first").status_code == 200


@pytest.mark.parametrize("host", [EVERYWHERE, "192.0.2.7", "::", "lab.internal"])
@pytest.mark.parametrize("token", ["", "short"])
def test_off_loopback_it_does_not_start_without_a_token(run: Path, host: str, token: str) -> None:
    done = CliRunner().invoke(command, ["view", str(run), "--host", host, "--token", token])
    assert done.exit_code == 2
    assert "lets other machines in" in done.output
    assert "--token new" in done.output


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.9.9.9")))
    assert not any(map(is_loopback, (EVERYWHERE, "::", "example.org", "10.0.0.1", "127.0.0.1.evil.example")))


@pytest.mark.parametrize("folder", ["nothing-here", "."])
def test_viewing_a_folder_without_a_run_is_one_message(tmp_path: Path, folder: str) -> None:
    done = CliRunner().invoke(command, ["view", str(tmp_path / folder)])
    assert done.exit_code == 5
    assert "holds no run" in done.output
    assert "Traceback" not in done.output


UP = ("../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..\\", "..%5c", "....//", "%252e%252e%252f", "..;/", "%00../")
ROOTS = ("/static/", "/runs/first/raw/", "/runs/first/rollouts/", "/runs/", "/runs/first/tasks/", "/runs/first/pool/")


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("up", UP)
def test_no_address_leads_out_of_the_run(client: TestClient, run: Path, root: str, up: str) -> None:
    secret = run.parent / "secret.txt"
    secret.write_text("SECRET-OF-THE-NEIGHBOUR")
    for depth in (1, 2, 6):
        for target in ("secret.txt", "run.db", "etc/passwd"):
            answer = client.get(f"{root}{up * depth}{target}")
            assert answer.status_code < 500
            assert "SECRET-OF-THE-NEIGHBOUR" not in answer.text
            assert "root:x:" not in answer.text
            assert "SQLite format" not in answer.text


@pytest.mark.parametrize(
    "host",
    ["localhost:evil", "localhost:80:80", "localhost:", "localhost:99999", "127.0.0.1@evil.example", "[::1",
     "[::1]evil.example", "[::1]:x", "[localhost]", "localhost.", "localhost/", "localhost#", "local host", "http://localhost",
     "localhost, evil.example", "127.1", "0", "[::ffff:127.0.0.1]"],
)  # fmt: skip
def test_an_odd_host_is_refused(client: TestClient, host: str) -> None:
    answer = client.get("/runs/first", headers={"host": host})
    assert answer.status_code == 400
    assert "--allow-host" in answer.text


@pytest.mark.parametrize("hosts", [[b"localhost", b"evil.example"], [b"evil.example", b"localhost"], []])
def test_not_exactly_one_host_is_refused(run: Path, hosts: list[bytes]) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", host) for host in hosts]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(create_app(Catalogue.of([run]))(scope, receive, send))
    assert sent[0]["status"] == 400
