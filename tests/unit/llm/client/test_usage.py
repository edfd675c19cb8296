"""What a reply is billed for: the report of any provider within bounds, an estimate otherwise."""

import pytest

from arise.llm.client.usage import RequestSize, counted, is_reported

SIZE = RequestSize(prompt_bytes=4_000, max_tokens=100)


@pytest.mark.parametrize(
    "fields",
    [{"prompt_tokens_details": {"cached_tokens": 640}}, {"prompt_cache_hit_tokens": 640}],
    ids=["openai", "deepseek"],
)
def test_cached_tokens_are_read_in_both_spellings(fields: dict[str, object]) -> None:
    usage, problems = counted({"prompt_tokens": 1_000, "completion_tokens": 20, **fields}, SIZE, said=80)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (1_000, 20, 640)
    assert problems == ""


def test_more_cached_tokens_than_the_prompt_has_count_as_none() -> None:
    usage, problems = counted(
        {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 11}, RequestSize(30, 100), 9
    )
    assert usage.cached_tokens == 0
    assert problems == "impossible cached_tokens reported, counted as 0"
    assert is_reported(problems)


def test_a_missing_report_is_estimated_and_marked() -> None:
    usage, problems = counted(None, SIZE, said=80)
    assert (usage.prompt_tokens, usage.completion_tokens) == (2_001, 41)
    assert problems == "no prompt_tokens reported; no completion_tokens reported"
    assert not is_reported(problems)
