"""Settings of the engine, section `[policy]`. A new kind is one class here and one line in `compose/policies.py`."""

import math
import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from arise.config.base import Count, Positive, Section
from arise.config.imported import Imported


class PolicyConfig(Section):
    """The embedded engine: device, tokens per micro-batch, conversations decoded together.

    Update memory grows with `token_budget`; sampling memory with `batch_rows` times the longest conversation, plus
    `cache_gib` for conversations between turns.
    """

    kind: Literal["embedded"] = "embedded"
    device: str = "cpu"
    token_budget: Count = 16_384
    batch_rows: Count = 64
    cache_gib: Positive = 2.0
    gradient_checkpointing: bool = False


Words = Annotated[tuple[str, ...], Field(strict=False)]


class VllmSampler(Section):
    """vLLM servers that sample the policy: started here, or given by address."""

    kind: Literal["vllm"] = "vllm"
    servers: Count = 1
    """Servers to start on this machine; each takes the next `gpus` GPUs after those of the trainer."""
    gpus: Count = 1
    """GPUs of one server, which splits the model over them."""
    addresses: Words = ()
    """Servers that already run, such as `http://node1:8000`; they must see `policy.weights_dir` under the same path."""
    key_env: str = ""
    """The environment variable that holds their API key, if they require one."""
    rows: Count = 64
    """Conversations that one server decodes together."""
    cache_gib: Positive = 4.0
    """Memory for keys and values on a CPU; on a GPU vLLM uses what the weights leave."""
    threads: Count = 1
    """CPU threads of a server."""
    environment: str = ""
    """The folder of vLLM's environment; empty: where `arise engines install vllm` puts it."""
    arguments: Words = ()
    """Further arguments of the server's command line."""
    start_seconds: Positive = 900.0
    """How long a server may take to start."""


class TrainerSettings(Section):
    """What AReaL and verl have in common: a group of processes in a separate environment."""

    device: Literal["cpu", "cuda"] = "cuda"
    processes: Count = 1
    """Trainer processes, one for each GPU."""
    launch: Words = ()
    """A command that starts all processes on other machines, such as `["srun", "--nodes=2", "--ntasks=16"]`; the
    worker's command is appended. It numbers them by RANK and LOCAL_RANK, or as SLURM does. Empty: on this machine."""
    host: str = ""
    """The name of this machine under which processes of `launch` reach it; rank 0 must run here."""
    threads: Count = 1
    """CPU threads of a process."""
    token_budget: Count = 16_384
    gradient_checkpointing: bool = True
    environment: str = ""
    """The folder of the library's environment; empty: where `arise engines install` puts it."""
    weights_dir: str = ""
    """Where weights pass from the trainer to the servers; empty: a folder of the cache. Shared between machines."""
    recover_every: Count = 1
    """Updates between recovery points. A trainer that dies is started from the last one and repeats those since."""
    start_seconds: Positive = 900.0
    """How long the trainer may take to start."""
    sampler: VllmSampler = VllmSampler()
    """The servers that sample."""

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if bool(self.launch) != bool(self.host):
            raise ValueError("launch and host go together: processes elsewhere must reach this machine")
        return self


class ArealConfig(TrainerSettings):
    """AReaL trains, with FSDP2."""

    kind: Literal["areal"] = "areal"
    backend: Annotated[str, Field(pattern=r"^(fsdp:([dct][1-9]\d*)+)?$")] = ""
    """AReaL's notation of how processes share the work: `fsdp:d4c2` is four groups with rows of their own; in each of
    them two processes divide the tokens of a row. Empty: each has rows of its own."""

    @model_validator(mode="after")
    def _of_all_processes(self) -> Self:
        sizes = {name: int(size) for name, size in re.findall(r"([dct])(\d+)", self.backend)}
        needed = math.prod(sizes.values())
        if sizes and needed != self.processes:
            raise ValueError(
                f"backend {self.backend!r} is for {needed} processes, processes is {self.processes}: "
                "make the product of its numbers the number of processes"
            )
        if "t" in sizes:
            raise ValueError("layers divided over processes (t) gave other log-probs than one process: leave out t")
        if self.device == "cpu" and sizes.get("c", 1) > 1:
            raise ValueError("the tokens of a row are divided by flash attention, which a CPU lacks: leave out c")
        return self


class VerlConfig(TrainerSettings):
    """verl trains, with FSDP2."""

    kind: Literal["verl"] = "verl"


class ImportedEngine(Imported):
    """A custom engine that samples and trains the policy of `[model]`."""


EngineChoice = Annotated[PolicyConfig | ArealConfig | VerlConfig | ImportedEngine, Field(discriminator="kind")]
