"""The command of a vLLM server that ARISE starts."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arise.engines.remote.processes import QUICK_START, Process

LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Values of vLLM's `--max-lora-rank`."""


def max_lora_rank(rank: int) -> int:
    """Return the smallest `--max-lora-rank` for adapters of this rank; raises ValueError with the remedy."""
    fitting = [most for most in LORA_RANKS if most >= rank]
    if not fitting:
        raise ValueError(f"vLLM serves adapters up to rank {LORA_RANKS[-1]}, not {rank}: lower model.lora_rank")
    return fitting[0]


@dataclass(frozen=True)
class VllmSpec:
    """How to start servers — `VllmSpec(Path("~/.cache/arise/engines/vllm/bin/python"), window=32_768)`."""

    python: Path
    window: int
    device: str = "cpu"
    precision: str = "fp32"
    first_gpu: int = 0
    """The first GPU of the first server; the trainer has the lower ones."""
    gpus: int = 1
    """GPUs of one server, which splits the model over them."""
    cache_gib: float = 4.0
    """Memory for keys and values on a CPU; on a GPU vLLM uses what the weights leave."""
    rows: int = 64
    threads: int = 1
    arguments: Sequence[str] = ()
    lora_rank: int = 0
    """Rank of the adapters that servers load; 0 if they load all weights."""

    def command(self, model: str, port: int, host: str = "127.0.0.1") -> list[str]:
        """Return the command line; log-probs are of the distribution sampled from, after temperature and top-p."""
        own = self._for_cpu() if self.device == "cpu" else []
        if self.lora_rank:
            own += ["--enable-lora", "--max-loras", "1", "--max-lora-rank", str(max_lora_rank(self.lora_rank))]
        return [
            *(str(self.python), "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", model, "--host", host, "--port", str(port)),
            *("--dtype", {"fp32": "float32", "bf16": "bfloat16"}[self.precision]),
            *("--max-model-len", str(self.window), "--max-num-seqs", str(self.rows)),
            *("--tensor-parallel-size", str(self.gpus), "--generation-config", "vllm"),
            *("--enable-scale-out", "--enable-prefix-caching", "--logprobs-mode", "processed_logprobs"),
            *("--disable-log-stats", *own, *self.arguments),
        ]

    def _for_cpu(self) -> list[str]:
        """Return the additional arguments for a CPU.

        Prompts are read in one piece. vLLM 0.32 rewinds the random generator of a seeded request whose prompt is read
        in chunks; the generator of a CPU cannot be rewound, and the server crashes.
        """
        whole = ["--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max(self.window, self.rows, 2048))]
        return ["--enforce-eager", "--distributed-executor-backend", "uni", *whole]

    def environment(self, number: int) -> dict[str, str]:
        """Return the environment variables of server `number`; each server takes the next GPUs."""
        shared = {
            "VLLM_SERVER_DEV_MODE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1" if self.lora_rank else "0",
            **QUICK_START.get(self.device, {}),
        }
        if self.device == "cpu":
            room = str(max(1, round(self.cache_gib)))
            return shared | {
                "VLLM_CPU_KVCACHE_SPACE": room,
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "OMP_NUM_THREADS": str(self.threads),
            }
        first = self.first_gpu + number * self.gpus
        return shared | {"CUDA_VISIBLE_DEVICES": ",".join(str(first + i) for i in range(self.gpus))}

    def start(self, number: int, model: str, logs: Path) -> tuple[Process, str]:
        """Start a server on a free port; it is not ready when this returns."""
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = int(probe.getsockname()[1])
        process = Process(self.command(model, port), logs / f"sampler-{number}.log", self.environment(number))
        return process, f"http://127.0.0.1:{port}"
