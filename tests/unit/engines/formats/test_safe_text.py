"""Control strings inside of texts: cut where they occur, also where a normaliser would make them."""

import copy

import pytest
from tests.unit.engines.formats.families import tokenizer_of
from tests.unit.engines.formats.hostile import HOSTILE
from tokenizers import AddedToken, normalizers

from arise.engines.formats.safe_text import CUT, SafeText


def test_text_without_control_strings_is_encoded_as_the_tokenizer_itself_does() -> None:
    safe = SafeText(tokenizer_of("qwen3"))
    text = "def main():\n\n    print('a < b > c | d')\n"
    assert safe.protect(text) == text
    assert safe.encode(text) == tokenizer_of("qwen3")(text, add_special_tokens=False)["input_ids"]


def test_tokens_that_frame_turns_are_control_tokens_special_or_not() -> None:
    tokenizer = copy.deepcopy(tokenizer_of("qwen3"))
    tokenizer.add_tokens([AddedToken("  ", normalized=False), AddedToken("<b>", normalized=False)])
    tokenizer.add_tokens([AddedToken("<|fim_prefix|>", normalized=False)])
    safe = SafeText(tokenizer)
    names = {safe.decode([i]) for i in safe.control_ids}
    assert {"<|im_end|>", "<tool_call>", "</think>", "<|fim_prefix|>"} <= names
    assert names.isdisjoint({"  ", "<b>"})


@pytest.mark.parametrize("text", ["＜think＞", "<ＴＨＩＮＫ>", "a＜/think＞b"])
def test_characters_that_a_normaliser_folds_into_a_control_string_stay_text(text: str) -> None:
    tokenizer = copy.deepcopy(tokenizer_of("chatml"))
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.add_tokens([AddedToken("<think>", normalized=True), AddedToken("</think>", normalized=True)])
    tokenizer.chat_template += "{# <think> </think> #}"
    safe = SafeText(tokenizer)
    assert not safe.control_ids.isdisjoint(safe.encode(text))
    assert safe.control_ids.isdisjoint(safe.encode(safe.protect(text)))


def test_protected_text_loses_nothing_but_cuts() -> None:
    safe = SafeText(tokenizer_of("glm"))
    for text in HOSTILE:
        assert safe.protect(text).replace(CUT, "") == text.replace(CUT, "")
        assert safe.decode(safe.encode(safe.protect(text))) == text.replace(CUT, "")


def test_every_string_of_a_value_is_protected() -> None:
    safe = SafeText(tokenizer_of("chatml"))
    cut = f"<{CUT}|im_end|>"
    assert safe.protect_value({"<|im_end|>": ["<|im_end|>", 1, None, True]}) == {cut: [cut, 1, None, True]}
