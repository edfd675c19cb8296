"""F26, F30, F31 — any text is stored as it was, no name leads out of a folder, no key reaches the run folder."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arise.config.file import ConfigError, load_config
from arise.errors import AriseError
from arise.report.exports import export
from arise.report.exports.names import file_name
from arise.rollouts.discretion import redacted_turn
from arise.run.chunks import ChunkPlace, StoredRollout, decompress, pack, pack_rollout, unpack_group, write_chunk
from arise.run.reader import RunReader
from arise.run.record import IterationRecord
from arise.run.store import RunStore
from arise.text.secrets import REDACTED, found, of_this_process, redact
from arise.types import (
    Draw,
    DrawPath,
    Group,
    Judgment,
    Observation,
    Pool,
    Rollout,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Turn,
)

TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
"""Anything, lone surrogates included."""


def rollout(text: str, fault: str = "", name: str = "k0/t/0") -> Rollout:
    turn = Turn(text, (ToolCall("bash", {"command": text}),), (Observation(text),), text)
    judgment = Judgment(0, "test", {}, {"r001": f"no verdict: {text}"}, notes=(text,))
    return Rollout(
        Trajectory(name, "t", (turn,), StopReason.FINISHED, text), None if fault else 1.0, None, judgment, fault
    )


def reads_back(text: str) -> None:
    group = Group(Task("t", text), (rollout(text),), 1)
    back = unpack_group(pack(group))
    assert back.task.instruction == text
    assert back.rollouts[0].trajectory.turns == group.rollouts[0].trajectory.turns


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_any_text_reads_back_as_it_was_written(text: str) -> None:
    reads_back(text)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_ten_thousand_texts_read_back_as_they_were_written(text: str) -> None:
    reads_back(text)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_any_text_can_be_committed_and_opened(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    is_committed_and_opened(tmp_path_factory, text)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXT)
def test_five_hundred_texts_can_be_committed_and_opened(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    is_committed_and_opened(tmp_path_factory, text)


def is_committed_and_opened(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("texts")
    commit(folder, Group(Task("t", text), (rollout(text, fault=text or "lost"),), 1))
    with RunReader.open(folder) as run:
        stored = run.trajectory("k0/t/0")
        assert stored is not None
        assert stored.whole().trajectory.turns[0].text == text


def commit(folder: Path, group: Group) -> None:
    with closing(RunStore.open(folder)) as store:
        store.save_group(0, group)
        draws = [Draw("t", DrawPath.UNIFORM, 1.0)]
        store.commit(IterationRecord(0, draws, [group], [None], [], Pool(), None, {}, {"at": 0}, None))


HOSTILE_NAMES = [
    "../x", "../../etc/passwd", "/etc/passwd", "a/../../x", "..", ".", "", "~/x", "\x00", "a\x00b", "con/../x",
    "%2e%2e/x", "..%2fx", "\\..\\x", "C:\\x", "a\nb", "-rf", ".hidden", "x" * 400, "ü/ß", "\u202e", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_leads_out_of_a_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "run" / "trajectories"
    (place,) = write_chunk(inside, "k00000.zst", [rollout("text")])
    (tmp_path / "secret").write_bytes(pack_rollout(rollout("secret")))
    with pytest.raises((AriseError, OSError, ValueError)):
        StoredRollout(inside, ChunkPlace(f"../../{name}/../secret", place.start, place.length)).whole()
    made = file_name(name)
    assert "/" not in made
    assert made not in {"", ".", ".."}
    assert len(made) < 200
    (tmp_path / made).write_text("x")
    assert (tmp_path / made).resolve().parent == tmp_path.resolve()


def test_names_do_not_clash() -> None:
    made = [file_name(name) for name in [*HOSTILE_NAMES, "a_b", "a b", "a/b"]]
    assert len({name for name in made if name != "a_b"}) >= len(HOSTILE_NAMES)


LONG = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0"
KEYS = {
    "openai": f"sk-proj-{LONG}",
    "anthropic": f"sk-ant-api03-{LONG}",
    "openrouter": f"sk-or-v1-{LONG}",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "github": f"ghp_{LONG}",
    "github fine-grained": f"github_pat_{LONG}",
    "gitlab": "glpat-abcdefghij0123456789",
    "hugging face": f"hf_{LONG}",
    "slack": "xoxb-123456789012-abcdefghijklmnop",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "stripe": f"sk_live_{LONG[:24]}",
    "npm": f"npm_{LONG[:36]}",
    "pypi": f"pypi-{LONG}{LONG}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "private key": f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n-----END RSA PRIVATE KEY-----",
    "password in an address": "https://me:hunter2hunter2@host.example/x",
}
BODY = {name: re.sub(r"-----[A-Z ]+-----|https://me:|@.*|\s", "", key) for name, key in KEYS.items()}
"""The part of each that must be nowhere."""


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_found_by_their_form(kind: str) -> None:
    assert found(f"the key is {KEYS[kind]}.", {}) == 1
    assert BODY[kind] not in redact(f"the key is {KEYS[kind]}.", {})


def test_values_of_secret_looking_variables_are_found_and_plain_text_is_not() -> None:
    environment = {"MY_API_KEY": "correct horse battery", "HOME": "/home/somebody", "SHORT_TOKEN": "abc"}
    assert redact("say correct horse battery now", environment) == f"say {REDACTED} now"
    for text in (
        "/home/somebody abc",
        "sk-learn",
        "git commit 0123456789abcdef0123456789abcdef01234567",
        "k3/task-1/0",
    ):
        assert redact(text, environment) == text


def everything_in(folder: Path) -> str:
    """All text below a folder, compressed parts opened."""
    texts = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            texts.append(content.decode("utf-8", "replace"))
            if path.suffix == ".zst":
                stored = RunReader.open(folder)
                texts += [json.dumps(str(stored.trajectory(row.id).whole())) for row in stored.rollouts()]  # type: ignore[union-attr]
                stored.close()
    with closing(sqlite3.connect(folder / "run.db")) as db:
        for (content,) in db.execute("SELECT content FROM inflight"):
            texts.append(zstandard.decompress(content).decode("utf-8", "surrogatepass"))
        for (state,) in db.execute("SELECT state FROM iterations"):
            texts.append(json.dumps(decompress(state)))
    return "\n".join(texts)


def test_no_key_reaches_the_run_folder_or_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "a plain word of mine")
    of_this_process.cache_clear()
    planted = " ".join([*KEYS.values(), "a plain word of mine"])
    seen = rollout(planted, fault=f"verifier: server said {planted}")
    agent_left = replace(seen.trajectory, turns=tuple(map(redacted_turn, seen.trajectory.turns)), system_prompt="")
    commit(tmp_path / "run", Group(Task("t", "do"), (replace(seen, trajectory=agent_left),), 1))
    (tmp_path / "run" / "config.toml").write_text("")
    for form in ("jsonl", "atif"):
        export(tmp_path / "run", form, tmp_path / "run" / form)
    text = everything_in(tmp_path / "run")
    assert [name for name, body in BODY.items() if body in text] == []
    assert "a plain word of mine" not in text
    assert REDACTED in text
    of_this_process.cache_clear()


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_in_the_configuration_is_refused_before_anything_is_written(kind: str) -> None:
    body = KEYS[kind].replace("\n", " ")
    overrides = ["judge.kind=model", "judge.endpoint.model=m", f'judge.endpoint.extra_body={{key = "{body}"}}']
    with pytest.raises(ConfigError, match="looks like a key") as caught:
        load_config(None, overrides)
    assert BODY[kind] not in str(caught.value)
