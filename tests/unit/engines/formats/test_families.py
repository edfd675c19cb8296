"""Families of the package `renderers`: chosen by name, safe against control strings, continued exactly."""

import copy
import json
import subprocess
import sys

import pytest
from tests.unit.engines.formats.families import tokenizer_of
from tests.unit.engines.formats.hostile import HOSTILE
from tests.unit.engines.formats.test_generic import ASKED, BASH, CALL, RESULT, conversation, cut_turns

from arise.engines.formats import families
from arise.engines.formats.choose import choose_format
from arise.engines.formats.families import FamilyFormat, family_of
from arise.engines.formats.generic import GenericFormat
from arise.ports import FormatError
from arise.types import Message, Reply

KNOWN = {
    "qwen3": "qwen3",
    "qwen3.5": "qwen3.5",
    "llama-3": "llama-3",
    "glm-4.5": "glm",
    "deepseek-v3": "deepseek",
}
each = pytest.mark.parametrize("name", KNOWN)


def chat_of(name: str) -> FamilyFormat:
    found = choose_format(tokenizer_of(KNOWN[name]), name)
    assert isinstance(found, FamilyFormat)
    return found


@each
def test_a_call_is_written_read_and_answered_token_for_token(name: str) -> None:
    chat = chat_of(name)
    prompt = chat.prompt(ASKED, [BASH])
    said = chat.answer(Message("assistant", calls=(CALL,)), [BASH])
    reply = chat.read(said, [BASH], prompt)
    assert [(call.name, dict(call.arguments)) for call in reply.calls] == [("bash", dict(CALL.arguments))]
    longer = chat.extend([*prompt, *said], [RESULT], [BASH])
    assert longer is not None
    assert longer[: len(prompt) + len(said)] == [*prompt, *said]
    assert "a.txt" in chat.safe.decode(longer[len(prompt) + len(said) :])


@each
def test_a_cut_turn_is_continued_exactly_or_not_at_all(name: str) -> None:
    chat, generic = chat_of(name), GenericFormat(tokenizer_of(KNOWN[name]))
    prompt = chat.prompt(ASKED, [BASH])
    for sampled in cut_turns(generic).values():
        ids = [*prompt, *sampled]
        longer = chat.extend(ids, [Message("user", "Your message was cut.")], [BASH])
        assert longer is None or longer[: len(ids)] == ids
        assert chat.read(sampled, [BASH], prompt).calls == ()


@each
def test_no_text_becomes_a_control_token(name: str) -> None:
    chat = chat_of(name)

    def controls(ids: list[int] | None) -> list[int]:
        assert ids is not None
        return [i for i in ids if i in chat.safe.control_ids]

    ids = [*chat.prompt(ASKED, [BASH]), *chat.answer(Message("assistant", calls=(CALL,)), [BASH])]
    results = [[Message("tool", text, call_id="call00001", name="bash")] for text in ("x", *HOSTILE)]
    expected = controls(chat.extend(ids, results[0], [BASH]))
    assert [controls(chat.extend(ids, result, [BASH])) for result in results[1:]] == [expected] * 60
    plain = controls(chat.prompt(conversation("x"), [BASH]))
    assert [controls(chat.prompt(conversation(text), [BASH])) for text in HOSTILE] == [plain] * 60


def test_a_malformed_call_keeps_its_text() -> None:
    chat = chat_of("qwen3")
    ids = chat.safe.encode('<tool_call>\n{"name": "bash", "arguments": \n</tool_call>')
    reply = chat.read(ids, [BASH])
    assert reply.calls == ()
    assert "invalid json" in reply.malformed
    assert reply.text.startswith("<tool_call>")


def test_a_stream_answers_at_the_end() -> None:
    chat = chat_of("qwen3")
    ids, reader = chat.answer(Message("assistant", "Fine.")), chat_of("qwen3").stream()
    assert reader.feed(ids) == []
    assert [event.text for event in reader.end()] == ["Fine."]
    assert chat.read(ids) == Reply("Fine.")


def test_a_family_is_known_by_the_exact_name_of_the_model() -> None:
    named = copy.copy(tokenizer_of("qwen3"))
    for name, family in (("Qwen/Qwen3-8B", "qwen3"), ("me/qwen3-tuned", ""), ("/models/Qwen3-8B", "")):
        named.name_or_path = name
        assert family_of(named) == family
        assert isinstance(choose_format(named), FamilyFormat if family else GenericFormat)


def test_an_unknown_format_and_one_of_another_family_are_refused() -> None:
    with pytest.raises(
        FormatError, match=r"model.format = 'qwen9' is unknown: use 'auto', 'generic', or one of: .*qwen3"
    ):
        choose_format(tokenizer_of("qwen3"), "qwen9")
    with pytest.raises(FormatError, match=r"'llama-3' does not fit this tokenizer .*use 'generic' or its own family"):
        choose_format(tokenizer_of("qwen3"), "llama-3")
    assert isinstance(choose_format(tokenizer_of("qwen3"), "generic"), GenericFormat)


def test_without_the_extra_models_are_written_by_their_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "find_spec", lambda _: None)
    named = copy.copy(tokenizer_of("qwen3"))
    named.name_or_path = "Qwen/Qwen3-8B"
    assert isinstance(choose_format(named), GenericFormat)
    with pytest.raises(FormatError, match=r"pip install arise-rl\[formats\]"):
        choose_format(named, "qwen3")


def test_the_package_is_imported_only_where_a_family_is_asked_for() -> None:
    code = "import json, sys, arise.engines.formats.choose; print(json.dumps('renderers' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
