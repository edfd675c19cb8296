"""The trainer: a group of processes in the environment of AReaL or verl."""

import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arise.engines.checks import TrainingRow
from arise.engines.faults import EngineFault
from arise.engines.remote.channel import ChannelClosed, Packet, receive, send
from arise.engines.remote.processes import QUICK_START, Process
from arise.engines.remote.workers.loop import Row, Taken, UpdateSpec, packed

BOOT = Path(__file__).parent / "workers" / "boot.py"
HELLO_SECONDS = 10.0
"""How long a connection may take to say who it is."""
REFUSAL_SECONDS = 10.0
"""How long the other processes may take to refuse what one has refused."""
NO_ROW = Row(np.zeros(2, np.int64), np.zeros(2, np.bool_), np.zeros(2), 0.0)
"""Pads the batch of a process that has fewer rows than the others; it has no generated token."""


class TrainerLost(EngineFault):
    """A process of the trainer died or stopped answering; what it held is gone."""


@dataclass(frozen=True)
class TrainerSpec:
    """How to start a trainer — `TrainerSpec("areal", Path("~/.cache/arise/engines/areal/bin/python"), "model")`."""

    library: str
    python: Path
    model: str
    processes: int = 1
    device: str = "cpu"
    precision: str = "fp32"
    token_budget: int = 16_384
    gradient_checkpointing: bool = False
    backend: str = ""
    lora_rank: int = 0
    """The rank of the adapters that are trained; 0: all weights are."""
    threads: int = 1
    launch: tuple[str, ...] = ()
    """A command that starts all processes elsewhere; they reach the driver at `host`."""
    host: str = "127.0.0.1"
    start_seconds: float = 600.0
    answer_seconds: float = 7200.0


@dataclass(frozen=True, eq=False)
class Job:
    """One update as the trainer receives it; the driver keeps it until the next recovery point."""

    rows: list[Row]
    spec: UpdateSpec


class TrainerGroup:
    """The processes of one trainer, after `start`; every request goes to all of them at once."""

    def __init__(self, spec: TrainerSpec, logs: Path) -> None:
        self._spec, self._logs = spec, logs
        self._pool = ThreadPoolExecutor(spec.processes, thread_name_prefix="trainer")
        self._connections: list[socket.socket] = []
        self._processes: list[Process] = []
        self.pids: list[int] = []
        self._share_of: list[int] = []
        self.facts: dict[str, Any] = {}

    def start(self) -> "TrainerGroup":
        """Start the processes and load the model; raises TrainerLost, also when another thread closes the group."""
        try:
            self._start()
            self.facts = self._open()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        spec, logs, secret = self._spec, self._logs, secrets.token_hex(16)
        command = [*spec.launch, str(spec.python), "-P", str(BOOT), spec.library]
        with socket.create_server((spec.host, 0)) as listener:
            shared = {
                "ARISE_DRIVER": "{}:{}".format(*listener.getsockname()),
                "ARISE_SECRET": secret,
                "WORLD_SIZE": str(spec.processes),
                "MASTER_ADDR": spec.host,
                "MASTER_PORT": str(_free_port(spec.host)),
                "OMP_NUM_THREADS": str(spec.threads),
                "TOKENIZERS_PARALLELISM": "false",
                **QUICK_START.get(spec.device, {}),
            }
            if spec.launch:
                self._processes.append(Process(command, logs / "trainer.log", shared))
            else:
                for rank in range(spec.processes):
                    numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(spec.processes)}
                    self._processes.append(Process(command, logs / f"trainer-{rank}.log", {**shared, **numbers}))
            self._accept(listener, secret)

    def _accept(self, listener: socket.socket, secret: str) -> None:
        found: dict[int, tuple[socket.socket, int]] = {}
        listener.settimeout(0.5)
        end = time.monotonic() + self._spec.start_seconds
        while len(found) < self._spec.processes:
            self._require_running()
            if time.monotonic() > end:
                raise self._lost(f"did not start within {self._spec.start_seconds:.0f} s")
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(HELLO_SECONDS)
            hello = _hello(connection)
            if not secrets.compare_digest(str(hello.get("secret", "")).encode(), secret.encode()):
                connection.close()
                continue
            connection.settimeout(self._spec.answer_seconds)
            found[int(hello["rank"])] = connection, int(hello["pid"])
        self._connections = [found[rank][0] for rank in sorted(found)]
        self.pids = [found[rank][1] for rank in sorted(found)]

    def _open(self) -> dict[str, Any]:
        spec = self._spec
        options = {
            "do": "open",
            "model": spec.model,
            "device": spec.device,
            "precision": spec.precision,
            "token_budget": spec.token_budget,
            "gradient_checkpointing": spec.gradient_checkpointing,
            "backend": spec.backend,
            "lora_rank": spec.lora_rank,
            "threads": spec.threads,
        }
        answers = [dict(answer.facts) for answer in self._exchange([Packet(options)] * spec.processes)]
        self._share_of = [int(facts.pop("share")) for facts in answers]
        return answers[0]

    def call(self, request: str, **facts: Any) -> dict[str, Any]:
        """Send the same request to every process; return the answer of the first."""
        return dict(self._exchange([Packet({"do": request, **facts})] * self._spec.processes)[0].facts)

    def take(self, job: Job) -> Taken:
        """Take one update."""
        return Taken(**self.call_with_rows("update", job.rows, spec=asdict(job.spec))[0][1].facts)

    def call_with_rows(self, request: str, rows: Sequence[Row], **facts: Any) -> list[tuple[list[int], Packet]]:
        """Distribute rows over the processes; return the row numbers of each, without padding rows, and its answer.

        Processes that share the model or the tokens of a row get the same rows.
        """
        different = distribute([len(row.ids_U) for row in rows], max(self._share_of) + 1)
        shares = [different[share] for share in self._share_of]
        width = max(1, *(len(numbers) for numbers in shares))
        parts = [[rows[n] for n in numbers] + [NO_ROW] * (width - len(numbers)) for numbers in shares]
        answers = self._exchange([Packet({"do": request, **facts}, packed(part)) for part in parts])
        return list(zip(shares, answers, strict=True))

    def _exchange(self, packets: Sequence[Packet]) -> list[Packet]:
        """Ask every process; raises ValueError if all refuse, else TrainerLost as soon as one fails."""

        def one(connection: socket.socket, packet: Packet) -> Packet:
            try:
                send(connection, packet)
                answer = receive(connection)
            except ChannelClosed as error:
                raise self._lost(str(error)) from None
            if said := answer.facts.get("error"):
                raise (self._lost(said) if answer.facts["fatal"] else ValueError(said))
            return answer

        futures = [self._pool.submit(one, *pair) for pair in zip(self._connections, packets, strict=True)]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        first = next((failure for future in done if (failure := future.exception())), None)
        if first is None:
            return [future.result() for future in futures]
        if isinstance(first, ValueError):  # a wrong request is wrong for all processes at the same time
            wait(waiting, timeout=REFUSAL_SECONDS)
            if all(future.done() and isinstance(future.exception(), ValueError) for future in futures):
                raise first
        # A failure in one process leaves the others waiting for it: hang up, so that every call returns.
        self._hang_up()
        wait(futures)
        raise first if isinstance(first, TrainerLost) else self._lost(str(first))

    def _hang_up(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _require_running(self) -> None:
        if not all(process.running for process in self._processes):
            raise self._lost("ended while it started")

    def _lost(self, reason: str) -> TrainerLost:
        said = next((p.said() for p in self._processes if not p.running), "") or self._processes[0].said()
        logs = self._processes[0].log.parent
        return TrainerLost(f"the {self._spec.library} trainer {reason}; its logs are in {logs}\n{said}")

    def close(self) -> None:
        """End every process of the group."""
        self._hang_up()
        for process in self._processes:
            process.end()
        for connection in self._connections:
            connection.close()
        self._pool.shutdown()


def _hello(connection: socket.socket) -> Mapping[str, Any]:
    """Return how a process announces itself; nothing if another program connects to the port."""
    try:
        return receive(connection).facts
    except (ChannelClosed, ValueError, KeyError, TypeError):
        return {}


def distribute(lengths: Sequence[int], processes: int) -> list[list[int]]:
    """Return the rows of each process: longest first, each row to the process with the fewest tokens so far."""
    shares, load = [list[int]() for _ in range(processes)], [0] * processes
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        lightest = min(range(processes), key=lambda p: (load[p], p))
        shares[lightest].append(number)
        load[lightest] += lengths[number]
    return shares


def as_row(row: TrainingRow) -> Row:
    """Return a row as a worker gets it."""
    tokens = row.tokens
    return Row(
        tokens.ids_U.astype(np.int64), tokens.generated_U, tokens.logprob_U.astype(np.float64), float(row.advantage)
    )


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as probe:
        return int(probe.getsockname()[1])
