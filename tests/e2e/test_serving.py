"""A checkpoint behind `arise serve`: clients, an evaluation through it, and the trajectories recorded of it."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.own_model import OwnModel
from tests.e2e.runs import call, start

TOOL = {"type": "function", "function": {"name": "bash", "description": "Run.", "parameters": {"type": "object"}}}
ASKED = {"messages": [{"role": "user", "content": "Write 42 to answer.txt.\n"}], "tools": [TOOL], "max_tokens": 8}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> OwnModel:
    return OwnModel(tmp_path_factory.mktemp("serving"))


@pytest.fixture(scope="module")
def run(place: OwnModel) -> Path:
    done = place.train("run", "train.iterations=1")
    assert done.returncode == 0, done.stderr
    return place.root / "run"


@contextmanager
def serving(place: OwnModel, *arguments: str) -> Iterator[dict[str, str]]:
    """A command that serves until it is interrupted, and what it printed when it was ready."""
    command = start(place.cache, *arguments, "--port", "0", "--json")
    command.wait_for_line("{")
    opened = json.loads(command.printed())
    yield opened
    command.interrupt()
    done = command.wait()
    assert done.returncode == 0, done


def post(url: str, body: dict[str, Any], key: str = "x") -> tuple[int, dict[str, Any]]:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - loopback
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_serve_answers_in_three_dialects_and_refuses_in_their_words(place: OwnModel, run: Path) -> None:
    with serving(place, "serve", str(run), "--token", "new") as opened:
        url, key = opened["base_url"], opened["api_key"]
        status, answer = post(f"{url}/chat/completions", {**ASKED, "model": "any", "return_token_ids": True}, key)
        assert (status, answer["model"], opened["model"]) == (200, "run-k00001", "run-k00001")
        assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])
        message = {"messages": ASKED["messages"], "max_tokens": 8}
        assert post(f"{url}/messages", message, key)[1]["role"] == "assistant"
        assert post(f"{url}/responses", {"input": "Write 42."}, key)[1]["object"] == "response"
        assert post(f"{url}/chat/completions", ASKED, "wrong")[0] == 401
        status, refused = post(f"{url}/chat/completions", {**ASKED, "n": 2}, key)
        assert (status, refused["error"]["param"]) == (400, "n")
        assert post(f"{url}/chat/completions", {**ASKED, "messages": []}, key)[0] == 400


def test_an_evaluation_through_serve_is_recorded_and_opens_in_analyze(place: OwnModel, run: Path) -> None:
    captured = place.root / "captured"
    with (
        serving(place, "serve", str(run)) as model,
        serving(place, "endpoint", "--upstream", model["base_url"], "--record", str(captured)) as recorder,
    ):
        named = ("--model", "run-k00001", "--base-url", recorder["base_url"], "--price", "0", "--attempts", "4")
        done = call(place.cache, "eval", str(run), *named, "--label", "served", "--json")
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["attempts"], found["faults"]) == (4, 0), found
    records = [json.loads(path.read_text()) for path in captured.glob("*.json")]
    whole = [record for record in records if record["tools"]]
    assert len(whole) == 4
    assert any(message.get("tool_calls") for record in whole for message in record["messages"])
    done = call(place.cache, "analyze", str(captured), "--json")
    assert done.returncode == 0, done.stderr
    coverage = json.loads(done.stdout)["coverage"]
    assert (coverage["analysed"], coverage["formats"]) == (len(records), {"openai-messages": len(records)})


def test_serving_errors_are_reported_at_once(place: OwnModel, run: Path) -> None:
    said = {
        ("serve", str(run), "--at", "9"): "holds no checkpoint of iteration 9",
        ("serve", str(run), "--host", "0.0.0.0"): "--token",  # noqa: S104 - what is refused
        ("serve", str(place.root)): "holds no run",
        ("endpoint", "--upstream", "nowhere", "--record", str(place.root / "x")): "--upstream nowhere is not a URL",
        (
            *("endpoint", "--upstream", "http://127.0.0.1:9/v1", "--record", str(place.root / "x")),
            *("--key-env", "ABSENT"),
        ): "ABSENT is not set",
    }
    for arguments, message in said.items():
        done = call(place.cache, *arguments)
        assert done.returncode != 0
        assert message in done.stderr, (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) <= 6, done.stderr


def test_a_recorder_without_its_server_says_so_to_the_client(place: OwnModel) -> None:
    record = ("endpoint", "--upstream", "http://127.0.0.1:9/v1", "--record", str(place.root / "none"))
    with serving(place, *record) as recorder:
        status, refused = post(f"{recorder['base_url']}/chat/completions", {**ASKED, "model": "m"})
    assert status == 503
    assert "http://127.0.0.1:9/v1 cannot be reached" in refused["error"]["message"]
