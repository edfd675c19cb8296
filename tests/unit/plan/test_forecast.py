"""Memory, layouts, shapes and assumptions against numbers worked out by hand."""

from pathlib import Path

import pytest

from arise.config import Config
from arise.errors import AriseError
from arise.plan.forecast import best_layout, disk_bytes, forecast
from arise.plan.hardware import GPUS, gpu_named
from arise.plan.layout import Layout, divide, lora_share, sampling_memory, training_memory
from arise.plan.shapes import KNOWN, read_shape, shape_of
from arise.plan.speed import training_seconds
from arise.plan.workload import Assumptions, assume, workload_of

H100 = GPUS["h100"]
QWEN = {
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
}


def config(lora: int = 0, **train: int) -> Config:
    return Config.model_validate(
        {
            "model": {"kind": "pretrained", "name": "Qwen/Qwen3-8B", "lora_rank": lora},
            "sampling": {"context_length": 32_768},
            "train": train,
            "tasks": {"kind": "harbor", "train": "a", "evaluation": "b"},
        }
    )


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen3-8b", 8.2), ("qwen3-32b", 32.8), ("llama-3.1-8b", 8.0), ("smollm2-135m", 0.135), ("qwen3.5-27b", 27.0)],
)
def test_known_shapes_have_the_published_number_of_parameters(name: str, billions: float) -> None:
    assert KNOWN[name].parameters / 1e9 == pytest.approx(billions, rel=0.03)


def test_a_shape_is_read_from_the_models_own_file(tmp_path: Path) -> None:
    assert read_shape("qwen3-8b", QWEN, tmp_path) == KNOWN["qwen3-8b"]


def test_layers_of_linear_attention_have_no_growing_cache(tmp_path: Path) -> None:
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 9
    hybrid = read_shape("hybrid", QWEN | {"layer_types": kinds}, tmp_path)
    assert hybrid.cache_bytes * 4 == KNOWN["qwen3-8b"].cache_bytes


def test_a_mixture_of_experts_reads_only_its_active_experts(tmp_path: Path) -> None:
    values = QWEN | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
    shape = read_shape("moe", values, tmp_path)
    assert shape.active < shape.parameters / 5


def test_an_unknown_model_and_an_incomplete_file_are_refused_by_name(tmp_path: Path) -> None:
    unknown = Config.model_validate({"model": {"kind": "pretrained", "name": "acme/unknown-9b"}})
    with pytest.raises(AriseError, match=r"unknown-9b.*\n.*\n.*config\.json"):
        shape_of(unknown)
    with pytest.raises(AriseError, match="vocab_size"):
        read_shape("x", {name: value for name, value in QWEN.items() if name != "vocab_size"}, tmp_path)
    with pytest.raises(AriseError, match="h1000"):
        gpu_named("h1000")


def test_full_training_takes_sixteen_bytes_per_parameter_over_all_gpus() -> None:
    shape, work = KNOWN["qwen3-8b"], workload_of(config(), Assumptions())
    parts = dict(training_memory(shape, work, Layout(H100, 1, 1, 8), 1.0).parts)
    assert parts["weights"] + parts["gradients"] + parts["optimizer"] == pytest.approx(16 * shape.parameters / 8)


def test_adapters_need_no_moments_of_the_weights() -> None:
    shape, work = KNOWN["qwen3-8b"], workload_of(config(16), Assumptions())
    share = lora_share(config(16), shape)
    assert 0.003 < share < 0.01  # rank 16 on every linear layer of Qwen3-8B: 44 million of 8.2 billion
    parts = dict(training_memory(shape, work, Layout(H100, 1, 1, 1), share).parts)
    assert parts["optimizer"] < 1e9 < parts["weights"]


def test_a_server_must_hold_one_conversation_of_full_length() -> None:
    shape, work = KNOWN["qwen3-8b"], workload_of(config(), Assumptions())
    parts = dict(sampling_memory(shape, work, Layout(H100, 4, 1, 4), Assumptions()).parts)
    assert parts["weights"] == pytest.approx(2 * shape.parameters)
    assert parts["cache"] >= shape.cache_bytes * 32_768


def test_context_parallelism_grows_until_a_row_fits() -> None:
    shape, work = KNOWN["qwen3-8b"], workload_of(Config(), Assumptions())
    wide = divide(shape, work, H100, 8, 1.0)
    assert wide.context_parallel > 1
    assert training_memory(shape, work, wide, 1.0).fits
    assert wide.gpus == 8


def test_training_time_is_eight_operations_per_parameter_and_token_plus_attention() -> None:
    shape, assumed = KNOWN["qwen3-8b"], Assumptions(train_efficiency=1.0)
    work = workload_of(config(), assumed)
    seconds = training_seconds(shape, work, Layout(H100, 1, 1, 1), assumed)
    least = 8 * shape.parameters * work.rollouts * work.tokens / H100.flops
    assert least < seconds < 1.6 * least


def test_limits_of_the_configuration_bound_the_assumptions() -> None:
    short = Config.model_validate({"agent": {"max_turns": 4, "max_tokens": 50}, "sampling": {"context_length": 2048}})
    work = workload_of(short, Assumptions(prompt=500))
    assert work.turns == 4
    assert work.generated <= 200
    assert work.tokens <= 2048


def test_an_assumption_is_changed_by_name_and_bad_ones_are_refused() -> None:
    assert assume(["turns=25", "spread=0"]).turns == 25
    for change, named in (("turn=3", "turn"), ("turns=many", "many"), ("turns=-1", "zero or more")):
        with pytest.raises(AriseError, match=named):
            assume([change])


def test_the_best_layout_is_no_slower_than_an_even_split_and_uses_every_gpu() -> None:
    small = config(tasks_per_iteration=4)
    assumed = Assumptions(turns=8)
    best = best_layout(small, H100, 8, assumed)
    even = divide(KNOWN["qwen3-8b"], workload_of(small, assumed), H100, 8, 1.0)
    assert best.gpus == 8
    assert forecast(small, best, assumed).simulated.seconds <= 1.02 * forecast(small, even, assumed).simulated.seconds


def test_halving_a_part_never_slows_the_run_and_names_the_bottleneck() -> None:
    slow_update = config(tasks_per_iteration=2)
    assumed = Assumptions(turns=4, update_overhead=5000.0)
    found = forecast(slow_update, divide(KNOWN["qwen3-8b"], workload_of(slow_update, assumed), H100, 8, 1.0), assumed)
    assert found.bottleneck == "update"
    assert found.faster[0].seconds <= found.simulated.seconds


def test_disk_counts_kept_checkpoints_and_every_rollout() -> None:
    shape, assumed = KNOWN["qwen3-8b"], Assumptions()
    chosen = config(iterations=100)
    work = workload_of(chosen, assumed)
    expected = 2 * 12 * shape.parameters + 100 * work.rollouts * work.tokens * assumed.bytes_per_token
    assert disk_bytes(chosen, shape, work, assumed, 1.0) == pytest.approx(expected)
