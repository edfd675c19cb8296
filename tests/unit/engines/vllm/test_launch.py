"""The command line of a server: what a CPU, adapters and log-probs of the sampled distribution need."""

from pathlib import Path

import pytest

from arise.engines.vllm.launch import VllmSpec, max_lora_rank


def words(spec: VllmSpec) -> str:
    return " ".join(spec.command("model", 8000))


@pytest.mark.parametrize(("window", "room"), [(512, 2048), (32_768, 32_768)])
def test_on_a_cpu_prompts_are_read_whole(window: int, room: int) -> None:
    said = words(VllmSpec(Path("python"), window))
    assert f"--no-enable-chunked-prefill --max-num-batched-tokens {room}" in said
    assert "chunked-prefill" not in words(VllmSpec(Path("python"), window, device="cuda"))


def test_servers_make_room_for_adapters_only_where_they_are_trained() -> None:
    plain, adapters = (VllmSpec(Path("python"), 512, lora_rank=rank) for rank in (0, 12))
    assert "lora" not in words(plain)
    assert "--enable-lora --max-loras 1 --max-lora-rank 16" in words(adapters)
    allowed = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
    assert (plain.environment(0)[allowed], adapters.environment(0)[allowed]) == ("0", "1")
    with pytest.raises(ValueError, match=r"up to rank 512, not 513: lower model.lora_rank"):
        max_lora_rank(513)
